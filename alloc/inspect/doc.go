// Package inspect describes the heap of any strategy as text for people.
package inspect

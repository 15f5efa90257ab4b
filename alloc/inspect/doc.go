// Package inspect writes what the heap of any strategy holds as text for people.
package inspect

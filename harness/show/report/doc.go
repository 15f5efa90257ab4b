// Package report turns figures into tables and files that people and scripts read.
//
// Tables show memory and time side by side, never one without the other.
package report

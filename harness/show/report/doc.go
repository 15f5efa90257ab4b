// Package report formats figures as tables and files for people and scripts.
//
// Tables always show memory and time together.
package report

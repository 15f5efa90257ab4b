// Package chart draws lines, bars and marks over two axes as SVG, PDF and PNG, for papers.
//
// A legend stands above the axes, in as many columns as there is room for, so that it hides no data.
// What is drawn is told apart by colour, and in grey by marks and dashes. Text is in Liberation Sans,
// whose widths are Arial's.
//
// The same chart gives the same bytes: no file holds a date.
//
// It is built on gonum.org/v1/plot, which scales, draws ticks, and writes the files; lengths are its.
package chart

// Package chart draws results of commands as SVG, PDF and PNG for papers: lines, bars and marks
// over two axes.
//
// [Read] reads a result in JSON or CSV, [Draw] makes a chart of one or more. [Results] lists the
// results that can be drawn and [Kinds] the kinds of charts with the results they take. Figures are
// named by the results' fields, as in package diff, so a new figure of a command can be drawn at
// once.
//
// The legend stands above the axes in as many columns as fit, so that it hides no data. Series
// differ in color, and in gray by marks and dashes. Text is in Liberation Sans, which has the
// widths of Arial. Output is deterministic: no file holds a date. Charts are built on
// gonum.org/v1/plot, which scales the axes and writes the files, and use its lengths.
//
// # Colors
//
// [Light] and [Dark] hold the colors of the strategies, the same in figures for print and on pages.
// The first eight are near the palette of Okabe and Ito ("Color Universal Design", 2008), with a
// brown and a slate instead of their yellow and black; eight more were found by a search. Any two
// differ visibly for people with and without red or green cones, and each has a contrast of at
// least 3 to 1 with its background, as WCAG 2.2 requires of marks; tests hold both. A strategy's
// number selects its color; from the seventeenth on, colors repeat. Marks and dashes change every
// eight strategies, so that lines of one color differ in them.
package chart

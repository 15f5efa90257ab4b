// Package site writes a board as a static site: HTML pages and SVG pictures that open offline.
//
// [Files] returns an index, a page for each track and a page for each trace and op log. The pages
// have no script and load nothing but their pictures. The first sentence of each page is its
// answer. Every cell has its value, its hash and the command that repeats it; of a log, the cells
// that decide a figure. Texts from files are escaped. Output is deterministic, byte for byte.
package site

package torch

import (
	"fmt"
	"path"
	"strconv"
	"strings"
)

// frameKind classifies a frame for display.
type frameKind uint8

// The kinds.
const (
	frameProgram  frameKind = iota // Python of the program, or an unrecognized frame
	framePackage                   // Python of an installed package
	frameLibrary                   // Python of PyTorch or of the standard library
	frameOperator                  // an operator of ATen
	frameNode                      // a node of the autograd graph
	frameNative                    // other C++ of PyTorch
	framePlumbing                  // the unwinder, the allocator, the interpreter, the C library
)

// mostLines bounds the lines of a stack. Recorded stacks have up to 65,536 frames and share their
// outer ones, so a small file could expand to any amount of text.
const mostLines = 256

// A long name may occur in every line of every stack, so names and lines are truncated.
const (
	mostName = 1024 // bytes of the name of a file or function
	mostText = 512  // bytes of a line
)

// Frames formats stacks for readers. With stacks="all" a recorded stack begins with the frames of
// the unwinder and of the allocator, and the frames of the interpreter are interleaved with the
// Python frames. Make one with [NewFrames]. It is safe for concurrent use.
//
// The rules, from the innermost frame outwards:
//   - Frames of the unwinder, the allocator, the interpreter and the C library are skipped.
//   - C++ frames are skipped if the stack has Python frames. The outermost operator below the
//     innermost Python frame is shown in brackets after it.
//   - Consecutive frames of PyTorch or of Python's standard library are one line, the innermost.
//   - A stack of only C++ frames, as in the backward pass, shows the nodes of the autograd graph
//     with their operators, or else every remaining frame.
//   - A stack whose frames would all be skipped is shown whole.
//   - A stack has at most 256 lines, the innermost. A line has at most 512 bytes.
type Frames struct {
	of    *Snapshot
	kinds []frameKind // by frame
}

// NewFrames classifies the frames of a snapshot. O(frames).
func NewFrames(s *Snapshot) *Frames {
	f := &Frames{of: s, kinds: make([]frameKind, len(s.Frames))}
	for i := range s.Frames {
		f.kinds[i] = kindOf(f.Frame(uint32(i)))
	}
	return f
}

// Lines returns the lines of a stack, innermost first, and its call site: the innermost line
// outside of PyTorch and the standard library, or else the innermost line. For a call site in an
// installed package, the innermost line of the program is appended. A stack without frames has no
// lines.
func (f *Frames) Lines(stack uint32) (lines []string, site string) {
	w := &lineWriter{Frames: f, site: -1, program: -1}
	python := false
	for frame := range f.of.Stack(stack) {
		if python = f.kinds[frame] <= frameLibrary; python {
			break
		}
	}
	for frame := range f.of.Stack(stack) {
		if len(w.lines) == mostLines {
			w.endRun()
			w.lines = append(w.lines, "… and further out")
			break
		}
		switch kind := f.kinds[frame]; {
		case kind <= frameLibrary:
			w.python(frame)
		case !python:
			w.native(frame)
		case kind == frameOperator && len(w.lines) == 0:
			w.operator = operatorOf(f.function(frame))
		}
	}
	if len(w.lines) == 0 {
		w.whole(stack)
	}
	w.endRun()
	switch {
	case len(w.lines) == 0:
		return nil, ""
	case w.site < 0:
		return w.lines, w.lines[0]
	case w.program > w.site:
		return w.lines, w.lines[w.site] + " ← " + w.lines[w.program]
	}
	return w.lines, w.lines[w.site]
}

// Frame returns the file and the function of a frame, each of at most 1,024 bytes.
func (f *Frames) Frame(frame uint32) (file, function string) {
	at := f.of.Frames[frame]
	file, function = f.of.Strings[at.File], f.of.Strings[at.Function]
	return file[:min(len(file), mostName)], function[:min(len(function), mostName)]
}

func (f *Frames) function(frame uint32) string {
	_, function := f.Frame(frame)
	return function
}

// line formats a frame. name is the file to show.
func (f *Frames) line(name string, frame uint32) string {
	return name + ":" + strconv.FormatInt(f.of.Frames[frame].Line, 10) + " " + f.function(frame)
}

// lineWriter writes the lines of one stack.
type lineWriter struct {
	*Frames
	lines    []string
	site     int    // index of the innermost line outside of libraries; -1 before it is known
	program  int    // index of the innermost line of the program; -1 before it is known
	operator string // outermost operator since the last line
	library  string // library of the last line; empty if it is not Python of a library
	more     int    // number of further frames merged into the last line
}

func (w *lineWriter) python(frame uint32) {
	file, _ := w.Frame(frame)
	file, library := shortFile(file)
	if library != "" && w.library != "" {
		w.more++
		return
	}
	w.endRun()
	w.library = library
	w.add(w.line(file, frame))
	last := len(w.lines) - 1 // the new line, or the equal line that it was merged into
	if library == "" && w.site < 0 {
		w.site = last
	}
	if w.kinds[frame] == frameProgram && w.program < 0 {
		w.program = last
	}
}

// endRun appends the number of merged library frames to the last line.
func (w *lineWriter) endRun() {
	if w.more > 0 {
		w.lines[len(w.lines)-1] += fmt.Sprintf(" (+%d in %s)", w.more, w.library)
	}
	w.library, w.more = "", 0
}

// native adds a frame of a stack that has no Python frames.
func (w *lineWriter) native(frame uint32) {
	switch w.kinds[frame] {
	case frameOperator:
		w.operator = operatorOf(w.function(frame))
	case frameNode:
		w.add(nodeOf(w.function(frame)))
	}
}

// add adds a line with the pending operator. A repetition of the last line is dropped.
func (w *lineWriter) add(text string) {
	if w.operator != "" {
		text += " [" + w.operator + "]"
		w.operator = ""
	}
	text = cut(text)
	if n := len(w.lines); n == 0 || w.lines[n-1] != text {
		w.lines = append(w.lines, text)
	}
}

func cut(text string) string {
	const mark = "…"
	if len(text) <= mostText {
		return text
	}
	return strings.ToValidUTF8(text[:mostText-len(mark)], "") + mark
}

// whole adds every frame except plumbing, or all frames if there is only plumbing.
func (w *lineWriter) whole(stack uint32) {
	for _, most := range []frameKind{frameNative, framePlumbing} {
		for frame := range w.of.Stack(stack) {
			if len(w.lines) == mostLines {
				return
			}
			if w.kinds[frame] <= most {
				file, _ := w.Frame(frame)
				w.lines = append(w.lines, cut(w.line(file, frame)))
			}
		}
		if len(w.lines) > 0 {
			return
		}
	}
}

// nativeFiles holds the extensions of files that are not Python. The unwinder reports "??" for a
// frame that it cannot resolve.
var nativeFiles = map[string]bool{
	"": true, ".c": true, ".cc": true, ".cpp": true, ".cxx": true, ".cu": true, ".cuh": true, ".h": true, ".hpp": true,
	".inl": true, ".so": true, ".S": true,
}

// plumbing holds parts of the names of functions between a program and the recording of its stack:
// first the unwinder's, then the allocator's and the C library's.
var plumbing = []string{
	"unwind::unwind", "CapturedTraceback::gather", "gather_with_cpp", "gather()", "CachingAllocator",
	"__libc_start", "__libc_init_first", "default_error_condition", "pthread_", "__clone", "clone3", "start_thread",
}

// plumbingFiles are parts of the paths of the interpreter's sources and of PyTorch's dispatcher.
var plumbingFiles = []string{
	"pythonrun.c", "Modules/main.c", "Objects/", "Python/", "pycore_", "ceval.c", "cpython/", "core/boxing", "/Redispatch",
}

func kindOf(file, function string) frameKind {
	if !isNative(file, function) {
		switch short, library := shortFile(file); {
		case library != "":
			return frameLibrary
		case short != file:
			return framePackage
		}
		return frameProgram
	}
	if function == "_start" || function == "main" || strings.HasPrefix(strings.TrimLeft(function, "_"), "Py") ||
		strings.HasPrefix(function, "pymain_") || containsAny(function, plumbing) || containsAny(file, plumbingFiles) {
		return framePlumbing
	}
	switch {
	case operatorOf(function) != "":
		return frameOperator
	case nodeOf(function) != "":
		return frameNode
	}
	return frameNative
}

// isNative reports whether a frame is compiled code. Shared libraries may carry a version, as in
// libc.so.6.
func isNative(file, function string) bool {
	switch {
	case file == "??", strings.Contains(path.Base(slashed(file)), ".so."):
		return true
	case file == "":
		return strings.Contains(function, "::") || strings.Contains(function, "(")
	}
	ending := path.Ext(slashed(file))
	return ending != "" && nativeFiles[ending]
}

func containsAny(text string, parts []string) bool {
	for _, part := range parts {
		if strings.Contains(text, part) {
			return true
		}
	}
	return false
}

// slashed converts the backslashes of Windows paths.
func slashed(file string) string { return strings.ReplaceAll(file, `\`, "/") }

// shortFile returns the path of a Python file for display, and the name of its library if it
// belongs to PyTorch or the standard library. The path of an installed package begins with its
// name.
func shortFile(file string) (short, library string) {
	plain := slashed(file)
	if strings.HasPrefix(plain, "<frozen ") {
		return file, "Python"
	}
	for _, folder := range []string{"/site-packages/", "/dist-packages/"} {
		if i := strings.LastIndex(plain, folder); i >= 0 {
			short = plain[i+len(folder):]
			switch name, _, _ := strings.Cut(short, "/"); name {
			case "torch", "torchgen", "functorch":
				library = "torch"
			}
			return short, library
		}
	}
	if i := strings.LastIndex(plain, "/pytorch/torch/"); i >= 0 { // a build from source
		return plain[i+len("/pytorch/"):], "torch"
	}
	if i := strings.LastIndex(plain, "/lib/python3."); i >= 0 {
		_, short, _ = strings.Cut(plain[i+len("/lib/"):], "/")
		return short, "Python"
	}
	return file, ""
}

// operatorOf returns the ATen operator whose entry point a function is, or "".
func operatorOf(function string) string {
	_, rest, ok := strings.Cut(function, "at::_ops::")
	if !ok {
		return ""
	}
	name, _, _ := strings.Cut(rest, "::")
	return "aten::" + name
}

// nodeOf returns the node of the autograd graph that a function runs, or "".
func nodeOf(function string) string {
	before, _, ok := strings.Cut(function, "::apply(")
	if !ok || !strings.HasPrefix(before, "torch::autograd::") {
		return ""
	}
	return before[strings.LastIndex(before, "::")+2:]
}

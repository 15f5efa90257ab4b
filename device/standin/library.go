package standin

import (
	"bufio"
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// library is one stand-in.
type library struct {
	soname string
	node   string   // version of its symbols; "" for none
	names  []string // functions that the program imports; nil for those of the models alone
	models []string // object files that model functions
}

// global are the patterns of the names of a CUDA runtime without a list of imports.
const global = "cuda*; __cuda*;"

// ours are the patterns of the functions that one stand-in looks up in another.
const ours = " vramyard_*;"

// Runtimes returns the stages that build stand-ins of the CUDA runtime of every release and of the
// driver, below folder, for programs whose imports are not known: all that is modelled is exported.
func Runtimes(folder string) (files map[string]string, stages [][]Step) {
	files = map[string]string{}
	var compile, link []Step
	for _, release := range []struct{ major, soname string }{
		{"11", "libcudart.so.11.0"}, {"12", "libcudart.so.12"}, {"13", "libcudart.so.13"},
	} {
		l := library{soname: release.soname, node: release.soname}
		for _, unit := range models["libcudart"] {
			l.models = append(l.models, unit+release.major+".o")
			compile = append(compile, compileUnit(unit, unit+release.major+".o", "-DCUDART_MAJOR="+release.major))
		}
		link = append(link, l.link(folder, files))
	}
	compile = append(compile, compileUnit("driver", "driver.o"))
	driver := library{soname: "libcuda.so.1", models: []string{"driver.o"}}
	return files, [][]Step{compile, append(link, driver.link(folder, files))}
}

// compileUnit returns the step that compiles a source file of a library.
func compileUnit(unit, out string, more ...string) Step {
	return append(append(append(Step{}, libraryFlags...), more...), "-c", "-o", out, unit+".cc")
}

// link returns the step that makes the library from its objects, and adds its version script: a
// program requires symbols by library name and version.
func (l *library) link(folder string, files map[string]string) Step {
	s := Step{"-shared", "-s", "-Wl,-soname," + l.soname}
	if l.node != "" {
		names := global
		if l.names != nil {
			names = strings.Join(l.names, "; ") + ";"
		}
		files[l.soname+".map"] = l.node + " { global: " + names + ours + " local: *; };\n"
		s = append(s, "-Wl,--version-script,"+l.soname+".map")
	}
	s = append(append(s, "-o", folder+l.soname), l.models...)
	return append(s, "-ldl", "-lpthread")
}

// rule says what the functions do whose names a pattern matches.
type rule struct {
	pattern *regexp.Regexp
	line    string // of C, with the name to be filled in
}

// rules reads native/functions.txt.
func rules() ([]rule, error) {
	text, err := native.ReadFile("native/functions.txt")
	if err != nil {
		return nil, err
	}
	macros := map[string]string{
		"done": "DONE(%s)\n", "creates": "CREATES(%%s, %d)\n", "zero": "ZERO(%%s, %d)\n", "size": "ZERO_SIZE(%%s, %d)\n",
		"work": "WORK(%%s, %d)\n", "area": "AREA(%%s, %d)\n", "areas": "AREAS(%%s, %d)\n", "text": "TEXT(%s)\n",
		"fails": "FAILS(%%s, %d)\n",
	}
	var all []rule
	lines := bufio.NewScanner(strings.NewReader(string(text)))
	for number := 1; lines.Scan(); number++ {
		words := strings.Fields(lines.Text())
		if len(words) == 0 || strings.HasPrefix(words[0], "#") {
			continue
		}
		macro, ok := macros[words[min(1, len(words)-1)]]
		if ok && len(words) == 3 {
			n, err := strconv.Atoi(words[2])
			ok = err == nil
			macro = fmt.Sprintf(macro, n)
		}
		pattern, err := regexp.Compile("^(?:" + words[0] + ")$")
		if !ok || err != nil {
			return nil, fmt.Errorf("native/functions.txt:%d: %q is no rule", number, lines.Text())
		}
		all = append(all, rule{pattern, macro})
	}
	return all, nil
}

// stubs returns the source of all functions of a library that the rules describe.
func stubs(names []string, all []rule) string {
	var text strings.Builder
	text.WriteString("#include \"stub.h\"\n\n")
	for _, name := range names {
		for _, r := range all {
			if r.pattern.MatchString(name) {
				fmt.Fprintf(&text, r.line, name)
				break
			}
		}
	}
	return text.String()
}

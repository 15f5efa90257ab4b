// Command vramyard compares GPU memory allocators on real traces, on a simulated GPU.
//
//	vramyard compare [TRACE...]                        compare strategies on traces
//	vramyard replay --strategy NAME TRACE              replay a trace through one strategy
//	vramyard verify --addresses FILE TRACE             compare caching with a recording of PyTorch
//	vramyard bench                                     measure time and memory on reference workloads
//	vramyard check                                     verify the invariants with generated calls
//	vramyard whatif FILE                               find the setting that would have saved a run
//	vramyard top FILE                                  list the owners of memory at the peak and at the failure
//	vramyard tune --strategy NAME [TRACE...]           search the settings of a strategy
//	vramyard diff A.json B.json                        compare two results; fail on a regression
//	vramyard gate --baseline BUDGET.yaml RECORDING...  fail if recorded work needs more memory than its budget
//	vramyard plot --out FIGURE RESULT...               draw a figure for a paper
//	vramyard offline [TRACE...]                        compute the offline-optimal packing of a trace
//	vramyard remat LOG...                              simulate training under a memory budget (DTR)
//	vramyard trace info|convert|cut|diff|gen ...       inspect, convert, cut, compare and generate traces
//	vramyard corpus list|fetch|verify|lint|anonymize   fetch the corpus of traces, check and anonymize traces
//	vramyard view FILE...                              show traces, snapshots and reports in a browser
//	vramyard strategies [NAME]                         list the strategies and their settings
//	vramyard devices                                   list the simulated cards and the GPUs
//	vramyard traces                                    list the traces inside the program
//	vramyard licenses                                  the licenses of the program and its modules
//	vramyard version                                   the version, the commit and the build of the program
//
// Exit status, as in diff, grep and pytest:
//
//	0    done; a request that finds no memory is a result, not an error
//	1    a condition is violated, or a trace fails where that is a condition: verify, check, replay --check,
//	     replay --fail-on-oom, trace info, trace diff, corpus verify, corpus lint, diff --fail-if, gate
//	2    trouble: a bad flag, a file that cannot be read or written, anything else
//	130  interrupted by Ctrl-C; 143 by SIGTERM. Long commands print their finished results first
//	141  the reader of standard output has closed it
//
// Statuses 1 and 2 come with one line on standard error that names the place.
package main

import (
	"github.com/vramyard/vramyard/cli"
	"github.com/vramyard/vramyard/strategies"
	"github.com/vramyard/vramyard/strategies/plugin"
)

func main() {
	cli.Main(append(strategies.All(), plugin.Spec())...)
}

// Command vramyard compares GPU memory allocators on real traces, on a simulated GPU.
//
//	vramyard compare [TRACE...]                        strategies side by side
//	vramyard replay --strategy NAME TRACE              one strategy in detail
//	vramyard verify --addresses FILE TRACE             hold caching to a recording of PyTorch
//	vramyard bench                                     time and memory on yardstick workloads
//	vramyard check                                     prove invariants on generated calls
//	vramyard whatif FILE                               which setting would have carried a run
//	vramyard top FILE                                  who holds memory at the peak and at the failure
//	vramyard tune --strategy NAME [TRACE...]           search the settings of a strategy
//	vramyard diff A.json B.json                         tell how two results differ, and fail where they may not
//	vramyard plot --out FIGURE RESULT...               a figure for a paper
//	vramyard offline [TRACE...]                        how little memory would do, known in advance
//	vramyard remat LOG...                              training steps within less memory, by computing tensors again
//	vramyard trace info|convert|cut|diff|gen ...       look at traces, change and compare them, make them up
//	vramyard view FILE...                              look at traces, snapshots and reports in a browser
//	vramyard strategies [NAME]                         what there is, with every setting
//	vramyard devices                                   the cards that a device can stand for
//	vramyard traces                                    the traces inside the program
//	vramyard licenses                                  the licenses of the program and its modules
//
// Exit status, as diff, grep and pytest have it:
//
//	0    done; a request that finds no memory is a result, not an error
//	1    a condition is violated, or a trace fails where that is a condition: verify, check, replay --check,
//	     replay --fail-on-oom, trace info, trace diff, diff --fail-if
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

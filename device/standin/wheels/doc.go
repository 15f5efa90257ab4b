// Command wheels records what releases of PyTorch import from CUDA, and builds stand-ins for them.
//
//	go run ./device/standin/wheels record FOLDER VERSION...
//	go run ./device/standin/wheels build FOLDER FACTS...
//
// The first downloads PyTorch's wheel of each version from PyPI by pip, for Python 3.11 on Linux
// and x86-64, without the packages that the wheel requires. It writes the facts that standin.Scan
// reads to FOLDER/torch-VERSION.json and deletes the wheel. One wheel needs up to 4 GiB below the
// folder for temporary files.
//
// The second builds the stand-ins for each of these files. In a folder "standins" beside a program
// they save its users the compiler; python/build.sh puts them into the wheel.
package main

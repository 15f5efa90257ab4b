// Command wheels records what releases of PyTorch import from CUDA.
//
//	go run ./device/standin/wheels FOLDER VERSION...
//
// It downloads PyTorch's wheel of each version from PyPI by pip, for Python 3.11 on Linux and
// x86-64, without the packages that the wheel requires. It writes the facts that standin.Scan reads
// to FOLDER/torch-VERSION.json and deletes the wheel. One wheel needs up to 4 GiB below the folder
// for temporary files.
package main

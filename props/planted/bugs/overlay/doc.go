// Command overlay writes the source with all planted bugs into a folder, or with those of the
// strategies that follow the folder. It runs in the root of the module:
//
//	go run ./props/planted/bugs/overlay FOLDER
//	go test -overlay FOLDER/overlay.json ./props/check
package main

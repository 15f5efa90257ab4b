// Command overlay writes the source with all planted bugs into a folder. It runs in the root of
// the module:
//
//	go run ./props/planted/bugs/overlay FOLDER
//	go test -overlay FOLDER/overlay.json ./props/check
package main

// Package store opens the stores of cells: folders, and buckets of S3 or of a server with its
// interface. It is apart from package cell so that only programs that use it link a client of S3.
package store

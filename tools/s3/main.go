// Command s3 runs a command beside an S3 server:
//
//	go -C tools/s3 run . go -C ../.. test ./harness/cell/store
//
// The server is a VersityGW over a temporary folder. It listens on the loopback interface for as long as the command
// runs. VRAMYARD_S3 is the location of a bucket for the command, and the usual variables have its credentials.
//
// It is a module of its own, so that what the server needs stays out of vramyard's.
package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/versity/versitygw/backend/meta"
	"github.com/versity/versitygw/backend/posix"
	"github.com/versity/versitygw/embedgw"
)

func main() {
	if len(os.Args) < 2 {
		fmt.Fprintln(os.Stderr, "usage: s3 COMMAND [ARGUMENT...]")
		os.Exit(2)
	}
	err := run(os.Args[1], os.Args[2:])
	if failed, ok := errors.AsType[*exec.ExitError](err); ok {
		os.Exit(failed.ExitCode())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "s3:", err)
		os.Exit(1)
	}
}

// run runs the command beside the server.
func run(command string, args []string) error {
	dir, err := os.Getwd() // the server changes it
	if err != nil {
		return err
	}
	folder, err := os.MkdirTemp("", "s3-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(folder) }()
	if err := os.Mkdir(filepath.Join(folder, "vramyard"), 0o777); err != nil { // the bucket
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	address, stopped, err := serve(ctx, folder)
	if err != nil {
		cancel()
		return err
	}
	c := exec.Command(command, args...)
	c.Dir, c.Stdout, c.Stderr = dir, os.Stdout, os.Stderr
	c.Env = append(os.Environ(), "AWS_ACCESS_KEY_ID="+key, "AWS_SECRET_ACCESS_KEY="+secret,
		"VRAMYARD_S3=s3://vramyard?region=us-east-1&endpoint=http://"+address)
	err = c.Run()
	cancel()
	return errors.Join(err, <-stopped)
}

const key, secret = "vramyard", "for-tests-only"

// serve starts the server and waits until it accepts connections.
func serve(ctx context.Context, folder string) (address string, stopped chan error, err error) {
	l, err := net.Listen("tcp", "127.0.0.1:0") // finds a free port
	if err != nil {
		return "", nil, err
	}
	address = l.Addr().String()
	if err := l.Close(); err != nil {
		return "", nil, err
	}
	var attributes meta.XattrMeta
	if err := attributes.Test(folder); err != nil {
		return "", nil, err
	}
	files, err := posix.New(folder, attributes, posix.PosixOpts{})
	if err != nil {
		return "", nil, err
	}
	stopped = make(chan error, 1)
	go func() {
		stopped <- embedgw.RunVersityGW(ctx, files, &embedgw.Config{RootUserAccess: key, RootUserSecret: secret,
			Ports: []string{address}, MaxConnections: 1000, MaxRequests: 1000, MultipartMaxParts: 10000,
			Quiet: true, KeepAlive: true})
	}()
	for {
		c, err := net.DialTimeout("tcp", address, time.Second)
		if err == nil {
			return address, stopped, c.Close()
		}
		select {
		case err := <-stopped:
			return "", nil, err
		case <-time.After(10 * time.Millisecond):
		}
	}
}

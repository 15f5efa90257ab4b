package store

import (
	"context"
	"fmt"
	"strings"

	"github.com/vramyard/vramyard/harness/cell"
)

// Open returns the store at a location: a folder, which it creates if need be, or
//
//	s3://BUCKET/PREFIX?region=REGION&endpoint=URL
//
// where all but the bucket may be left out. The defaults are the environment variables AWS_REGION,
// AWS_ENDPOINT_URL_S3 and AWS_ENDPOINT_URL, then the region of the bucket and Amazon's endpoint.
// Credentials come from AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_SESSION_TOKEN, from a
// profile in ~/.aws/credentials, or from the role of the container or the machine.
//
// Open checks that objects can be written and that the first writer of a name succeeds. For that it
// leaves an empty object in the bucket.
func Open(ctx context.Context, location string) (cell.Store, error) {
	return open(ctx, location, func(path string) (cell.Store, error) { return cell.OpenDir(path) }, (*bucket).probe)
}

// Existing returns a store at a location of [Open], to be read. It fails if no program has opened
// one there before, and writes nothing.
func Existing(ctx context.Context, location string) (cell.Store, error) {
	return open(ctx, location, func(path string) (cell.Store, error) { return cell.ExistingDir(path) }, (*bucket).exists)
}

func open(ctx context.Context, location string, folder func(string) (cell.Store, error),
	check func(*bucket, context.Context) error) (cell.Store, error) {
	scheme, _, ok := strings.Cut(location, "://")
	switch {
	case location == "":
		return nil, fmt.Errorf("store: no location: want a folder or s3://BUCKET/PREFIX")
	case !ok:
		return folder(location)
	case scheme != "s3":
		return nil, fmt.Errorf("store: unknown scheme %.20q: want a folder or s3://BUCKET/PREFIX", scheme)
	}
	return openBucket(ctx, location, check)
}

package store

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/minio/minio-go/v7"

	"github.com/vramyard/vramyard/harness/cell"
)

// tries is how often the client sends a request, with growing pauses, to a server that is
// overloaded or cannot be reached.
const tries = 10

// bucket is a store in a bucket of S3.
type bucket struct {
	at  *place
	api minio.Core
}

// probed is the name of the object that probe writes. Names leaves it out.
const probed = "probe/if-none-match"

func openBucket(ctx context.Context, location string, check func(*bucket, context.Context) error) (*bucket, error) {
	at, err := parse(location)
	if err != nil {
		return nil, fmt.Errorf("store: %w", err)
	}
	client, err := at.client()
	if err != nil {
		return nil, fmt.Errorf("store: %w", err)
	}
	b := &bucket{at: at, api: minio.Core{Client: client}}
	if err := check(b, ctx); err != nil {
		return nil, fmt.Errorf("store: %w", err)
	}
	return b, nil
}

// exists checks that the object of probe is there.
func (b *bucket) exists(ctx context.Context) error {
	_, err := b.Get(ctx, probed)
	if errors.Is(err, cell.ErrMissing) {
		return fmt.Errorf("%s: no store is there yet", b)
	}
	return err
}

// probe writes an object twice unless it exists. A server that does not know the condition replaces
// objects, and the results of two workers could not be compared.
func (b *bucket) probe(ctx context.Context) error {
	for range 2 {
		if err := b.Put(ctx, probed, nil); errors.Is(err, cell.ErrTaken) {
			return nil
		} else if err != nil {
			return err
		}
	}
	return fmt.Errorf("bucket %s: the server at %s ignores If-None-Match and replaces existing objects: "+
		"use a server with conditional writes", b.at.bucket, b.api.EndpointURL())
}

// String implements [cell.Store].
func (b *bucket) String() string { return b.at.location }

// Get implements [cell.Store].
func (b *bucket) Get(ctx context.Context, name string) ([]byte, error) {
	r, _, _, err := b.api.GetObject(ctx, b.at.bucket, b.at.prefix+name, minio.GetObjectOptions{})
	if err != nil {
		return nil, b.explain(ctx, name, err)
	}
	defer r.Close()
	body, err := io.ReadAll(r)
	return body, b.explain(ctx, name, err)
}

// Put implements [cell.Store]. A writer whose first request succeeded without an answer gets
// [cell.ErrTaken], for its own object.
func (b *bucket) Put(ctx context.Context, name string, body []byte) error {
	// The sum of the body replaces signed chunks, whose end not every server reads if it refuses an
	// empty object.
	o, sum := minio.PutObjectOptions{DisableContentSha256: true}, sha256.Sum256(body)
	o.SetMatchETagExcept("*")
	for attempt := range 5 {
		_, err := b.api.PutObject(ctx, b.at.bucket, b.at.prefix+name, bytes.NewReader(body), int64(len(body)), "",
			hex.EncodeToString(sum[:]), o)
		switch minio.ToErrorResponse(err).StatusCode {
		case http.StatusPreconditionFailed:
			return cell.ErrTaken
		case http.StatusConflict: // another request for this name is in progress, or there is an object
			if _, err := b.Get(ctx, name); err == nil {
				return cell.ErrTaken
			} else if !errors.Is(err, cell.ErrMissing) {
				return err
			}
		default:
			return b.explain(ctx, name, err)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(minio.DefaultRetryUnit << attempt):
		}
	}
	return fmt.Errorf("bucket %s, object %s: other requests for it did not end: try again later",
		b.at.bucket, b.at.prefix+name)
}

// Names implements [cell.Store].
func (b *bucket) Names(ctx context.Context, prefix string) ([]string, error) {
	var all []string
	o := minio.ListObjectsOptions{Prefix: b.at.prefix + prefix, Recursive: true}
	for object := range b.api.ListObjectsIter(ctx, b.at.bucket, o) {
		if object.Err != nil {
			return nil, b.explain(ctx, prefix, object.Err)
		}
		if name := strings.TrimPrefix(object.Key, b.at.prefix); name != probed {
			all = append(all, name)
		}
	}
	slices.Sort(all) // not all servers do
	return all, ctx.Err()
}

// Remove implements [cell.Store].
func (b *bucket) Remove(ctx context.Context, name string) error {
	err := b.explain(ctx, name, b.api.RemoveObject(ctx, b.at.bucket, b.at.prefix+name, minio.RemoveObjectOptions{}))
	if errors.Is(err, cell.ErrMissing) {
		return nil
	}
	return err
}

// explain returns an error that names the object and the remedy. The message of the server is not
// part of it: it may repeat the request.
func (b *bucket) explain(ctx context.Context, name string, err error) error {
	if err == nil {
		return nil
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	r, ok := errors.AsType[minio.ErrorResponse](err)
	if ok && r.Code == minio.NoSuchKey {
		return cell.ErrMissing
	}
	why := ""
	switch {
	case !ok || r.StatusCode == 0: // an answer that the client does not understand has no status
		why = fmt.Sprintf("%v: is %s the right endpoint, and does it run?", err, b.api.EndpointURL())
	case r.Region != "" && slices.Contains(elsewhere, r.Code):
		why = fmt.Sprintf("the bucket is in region %.60s: set region=%[1]s in the location, or AWS_REGION", r.Region)
	case slices.Contains(elsewhere, r.Code):
		why = "the bucket is in another region: set region=REGION in the location, or AWS_REGION"
	case remedies[r.Code] != "":
		why = remedies[r.Code]
	case r.StatusCode >= 500 || r.StatusCode == http.StatusTooManyRequests:
		why = fmt.Sprintf("the server is overloaded or defective (%.60s), after %d tries: use fewer workers at once, "+
			"or try again later", r.Code, tries)
	default:
		why = fmt.Sprintf("the server at %s answered %d: %.60s", b.api.EndpointURL(), r.StatusCode, r.Code)
	}
	return fmt.Errorf("bucket %s, object %s: %s", b.at.bucket, b.at.prefix+name, strings.Join(strings.Fields(why), " "))
}

// elsewhere are the codes of a server for requests to the wrong region.
var elsewhere = []string{"AuthorizationHeaderMalformed", "InvalidRegion", "PermanentRedirect", "TemporaryRedirect",
	"IllegalLocationConstraintException"}

// remedies are explanations by the code of the server.
var remedies = map[string]string{
	"AccessDenied": "access denied: the credentials need s3:ListBucket for the bucket, and s3:GetObject, " +
		"s3:PutObject and s3:DeleteObject for its objects",
	"ExpiredToken":          "the credentials have expired: get new ones",
	"InvalidAccessKeyId":    "the server does not know the access key: is AWS_ACCESS_KEY_ID of this server?",
	"InvalidToken":          "the session token is not of these credentials: set AWS_SESSION_TOKEN, or unset it",
	"NoSuchBucket":          "no such bucket: create it, or correct its name",
	"RequestTimeTooSkewed":  "the clock of this machine is wrong: set it",
	"SignatureDoesNotMatch": "the secret key does not fit the access key: correct AWS_SECRET_ACCESS_KEY",
}

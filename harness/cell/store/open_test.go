package store_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/harness/cell/store"
)

func TestWrongLocationsAreErrors(t *testing.T) {
	variables(t)
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o666))
	const endpoint = "store: wrong endpoint of S3: want http://HOST:PORT or https://HOST"
	const form = ": want s3://BUCKET/PREFIX?region=REGION&endpoint=URL"
	for location, want := range map[string]string{
		"":                       "store: no location: want a folder or s3://BUCKET/PREFIX",
		"gs://results":           `store: unknown scheme "gs": want a folder or s3://BUCKET/PREFIX`,
		file:                     "store: mkdir " + file + ": not a directory",
		"s3://":                  `store: bucket "": Bucket name cannot be empty`,
		"s3:///prefix":           `store: bucket "": Bucket name cannot be empty`,
		"s3://a%20b":             "store: not a location in S3" + form,
		"s3://results?bucket=x":  `store: parameter "bucket" of the location is unknown or repeated` + form,
		"s3://results?region=%z": "store: not a location in S3" + form,
		"s3://AKID:" + secret + "@results?region=x": "store: not a location in S3" + form,
		"s3://AKID:secret@results": "store: credentials in the location: " +
			"set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY instead",
		"s3://results?region=a&region=b":           `store: parameter "region" of the location is unknown or repeated` + form,
		"s3://results?endpoint=127.0.0.1:9000":     endpoint,
		"s3://results?endpoint=http://u:p@host":    endpoint,
		"s3://results?endpoint=http://host/folder": endpoint,
	} {
		_, err := store.Open(t.Context(), location)
		require.EqualError(t, err, want, location)
	}
}

func TestCredentialsAreNeeded(t *testing.T) {
	variables(t)
	for _, name := range []string{"AWS_SECRET_ACCESS_KEY", "AWS_ACCESS_KEY_ID"} {
		t.Setenv(name, "")
		_, err := store.Open(t.Context(), "s3://results")
		require.EqualError(t, err, "store: no credentials for s3://results: set AWS_ACCESS_KEY_ID and "+
			"AWS_SECRET_ACCESS_KEY, or AWS_PROFILE for a profile in ~/.aws/credentials, or give the machine a role")
	}
	t.Setenv("AWS_PROFILE", "cluster")
	_, err := store.Open(t.Context(), "s3://results")
	require.EqualError(t, err, `store: no credentials for s3://results: AWS_PROFILE is "cluster", which has no keys in `+
		"~/.aws/credentials")
}

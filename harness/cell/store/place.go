package store

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"
	"github.com/minio/minio-go/v7/pkg/s3utils"
)

// place is a location in S3, complete with the settings of the environment.
type place struct {
	location string   // as the user wrote it
	bucket   string   // its name
	prefix   string   // of the keys of all objects; empty or with a slash at its end
	region   string   // empty: the bucket's
	endpoint *url.URL // of the server
}

// form is the form of a location, for errors. They do not quote a location that cannot be read: it
// may have a secret in it.
const form = "want s3://BUCKET/PREFIX?region=REGION&endpoint=URL"

func parse(location string) (*place, error) {
	u, err := url.Parse(location)
	switch {
	case err != nil || u.Port() != "" || u.Fragment != "":
		return nil, errors.New("not a location in S3: " + form)
	case u.User != nil:
		return nil, errors.New("credentials in the location: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY instead")
	}
	if err := s3utils.CheckValidBucketName(u.Host); err != nil {
		return nil, fmt.Errorf("bucket %q: %w", u.Host, err)
	}
	query, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		return nil, errors.New("not a location in S3: " + form)
	}
	for _, name := range slices.Sorted(maps.Keys(query)) {
		if name != "region" && name != "endpoint" || len(query[name]) != 1 {
			return nil, fmt.Errorf("parameter %q of the location is unknown or repeated: %s", name, form)
		}
	}
	p := &place{location: location, bucket: u.Host, prefix: strings.Trim(u.Path, "/")}
	if p.prefix != "" {
		p.prefix += "/"
	}
	p.region = cmp.Or(query.Get("region"), os.Getenv("AWS_REGION"), os.Getenv("AWS_DEFAULT_REGION"))
	p.endpoint, err = endpoint(cmp.Or(query.Get("endpoint"), os.Getenv("AWS_ENDPOINT_URL_S3"),
		os.Getenv("AWS_ENDPOINT_URL"), "https://s3.amazonaws.com"))
	return p, err
}

func endpoint(text string) (*url.URL, error) {
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil ||
		strings.Trim(u.Path, "/") != "" || u.RawQuery != "" {
		return nil, errors.New("wrong endpoint of S3: want http://HOST:PORT or https://HOST")
	}
	return u, nil
}

// client returns a client of the server.
func (p *place) client() (*minio.Client, error) {
	from := []credentials.Provider{&credentials.EnvAWS{}, &credentials.FileAWSCredentials{}}
	if roles() {
		from = append(from, &credentials.IAM{Client: &http.Client{Timeout: 5 * time.Second}})
	}
	found := credentials.NewChainCredentials(from)
	if v, err := found.GetWithContext(nil); err != nil || v.SignerType.IsAnonymous() {
		if name := os.Getenv("AWS_PROFILE"); name != "" {
			return nil, fmt.Errorf("no credentials for %s: AWS_PROFILE is %q, which has no keys in ~/.aws/credentials",
				p.location, name)
		}
		return nil, fmt.Errorf("no credentials for %s: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE "+
			"for a profile in ~/.aws/credentials, or give the machine a role", p.location)
	}
	return minio.New(p.endpoint.Host, &minio.Options{Creds: found, Secure: p.endpoint.Scheme == "https",
		Region: p.region, MaxRetries: tries})
}

// roles reports whether to look for a role of the container or the machine.
func roles() bool {
	return os.Getenv("AWS_EC2_METADATA_DISABLED") != "true" || os.Getenv("AWS_WEB_IDENTITY_TOKEN_FILE") != "" ||
		os.Getenv("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI") != "" || os.Getenv("AWS_CONTAINER_CREDENTIALS_FULL_URI") != ""
}

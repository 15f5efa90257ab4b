package store_test

import (
	"context"
	"encoding/xml"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/harness/cell"
	"github.com/vramyard/vramyard/harness/cell/store"
)

func TestMain(m *testing.M) {
	minio.DefaultRetryUnit, minio.DefaultRetryCap = time.Millisecond, time.Millisecond
	os.Exit(m.Run())
}

const secret, token = "seCret+/key", "t0ken"

// variables sets the environment of a client, with credentials that no server knows.
func variables(t *testing.T) {
	t.Helper()
	for _, variable := range os.Environ() {
		if name, _, _ := strings.Cut(variable, "="); strings.HasPrefix(name, "AWS_") {
			t.Setenv(name, "")
		}
	}
	t.Setenv("HOME", t.TempDir())
	t.Setenv("USERPROFILE", t.TempDir())
	t.Setenv("AWS_EC2_METADATA_DISABLED", "true")
	t.Setenv("AWS_ACCESS_KEY_ID", "AKID")
	t.Setenv("AWS_SECRET_ACCESS_KEY", secret)
	t.Setenv("AWS_SESSION_TOKEN", token)
}

// answer is the answer of a server, an error if it has a code.
type answer struct {
	status int
	code   string
	region string
}

func (a answer) write(w http.ResponseWriter) {
	type body struct {
		XMLName               xml.Name `xml:"Error"`
		Code, Message, Region string
	}
	w.Header().Set("Last-Modified", "Sat, 28 Nov 2026 20:31:13 GMT")
	w.WriteHeader(a.status)
	if a.code != "" {
		_ = xml.NewEncoder(w).Encode(body{Code: a.code, Region: a.region, Message: "you sent " + secret + "\nand " + token})
	}
}

// serve starts a server of S3 and returns the location of a bucket.
func serve(t *testing.T, handle func(w http.ResponseWriter, r *http.Request)) string {
	t.Helper()
	variables(t)
	s := httptest.NewServer(http.HandlerFunc(handle))
	t.Cleanup(s.Close)
	t.Setenv("AWS_ENDPOINT_URL_S3", s.URL)
	t.Setenv("AWS_REGION", "us-east-1")
	return "s3://results/study"
}

func TestErrorsNameTheRemedy(t *testing.T) {
	const where = "store: bucket results, object study/probe/if-none-match: "
	const denied = "access denied: the credentials need s3:ListBucket for the bucket, and s3:GetObject, " +
		"s3:PutObject and s3:DeleteObject for its objects"
	for _, c := range []struct {
		answer answer
		want   string
	}{
		{answer{http.StatusForbidden, "AccessDenied", ""}, denied},
		{answer{http.StatusForbidden, "", ""}, denied},
		{answer{http.StatusForbidden, "InvalidAccessKeyId", ""},
			"the server does not know the access key: is AWS_ACCESS_KEY_ID of this server?"},
		{answer{http.StatusForbidden, "SignatureDoesNotMatch", ""},
			"the secret key does not fit the access key: correct AWS_SECRET_ACCESS_KEY"},
		{answer{http.StatusBadRequest, "ExpiredToken", ""}, "the credentials have expired: get new ones"},
		{answer{http.StatusNotFound, "NoSuchBucket", ""}, "no such bucket: create it, or correct its name"},
		{answer{http.StatusMovedPermanently, "PermanentRedirect", "eu-west-1"},
			"the bucket is in region eu-west-1: set region=eu-west-1 in the location, or AWS_REGION"},
		{answer{http.StatusBadRequest, "AuthorizationHeaderMalformed", "eu-west-1"},
			"the bucket is in region eu-west-1: set region=eu-west-1 in the location, or AWS_REGION"},
		{answer{http.StatusMovedPermanently, "PermanentRedirect", ""},
			"the bucket is in another region: set region=REGION in the location, or AWS_REGION"},
		{answer{http.StatusServiceUnavailable, "SlowDown", ""}, "the server is overloaded or defective (SlowDown), " +
			"after 10 tries: use fewer workers at once, or try again later"},
		{answer{http.StatusBadRequest, "Odd\nCode", ""}, "the server at ENDPOINT answered 400: Odd Code"},
	} {
		t.Run(c.answer.code, func(t *testing.T) {
			location := serve(t, func(w http.ResponseWriter, _ *http.Request) { c.answer.write(w) })
			_, err := store.Open(t.Context(), location)
			require.EqualError(t, err, where+strings.ReplaceAll(c.want, "ENDPOINT", os.Getenv("AWS_ENDPOINT_URL_S3")))
		})
	}
}

func TestMissingServersAreNamed(t *testing.T) {
	variables(t)
	s := httptest.NewServer(nil)
	s.Close()
	_, err := store.Open(t.Context(), "s3://results?region=x&endpoint="+s.URL)
	require.ErrorContains(t, err, "store: bucket results, object probe/if-none-match: ")
	require.ErrorContains(t, err, "refused: is "+s.URL+" the right endpoint, and does it run?")
}

// opened returns a store whose server answers requests after the probe in this order, and then the
// number of requests so far.
func opened(t *testing.T, answers ...answer) (cell.Store, *atomic.Int32) {
	t.Helper()
	requests := &atomic.Int32{}
	requests.Store(-1)
	s, err := store.Open(t.Context(), serve(t, func(w http.ResponseWriter, _ *http.Request) {
		i := int(requests.Add(1))
		switch {
		case i == 0:
			answer{http.StatusPreconditionFailed, "PreconditionFailed", ""}.write(w)
		case i <= len(answers):
			answers[i-1].write(w)
		default:
			answer{http.StatusTeapot, "TooManyRequests", ""}.write(w)
		}
	}))
	require.NoError(t, err)
	return s, requests
}

func TestOverloadedServersAreAskedAgain(t *testing.T) {
	for _, busy := range []answer{
		{http.StatusServiceUnavailable, "SlowDown", ""},
		{http.StatusServiceUnavailable, "ServiceUnavailable", ""},
		{http.StatusInternalServerError, "InternalError", ""},
		{http.StatusBadGateway, "", ""},
		{http.StatusTooManyRequests, "", ""},
	} {
		s, requests := opened(t, busy, busy, answer{http.StatusOK, "", ""})
		require.NoError(t, s.Put(t.Context(), "name", []byte("body")))
		require.EqualValues(t, 3, requests.Load())
	}
}

func TestConflictsEndWithOneWriter(t *testing.T) {
	conflict := answer{http.StatusConflict, "ConditionalRequestConflict", ""}
	missing := answer{http.StatusNotFound, "NoSuchKey", ""}
	done := answer{http.StatusOK, "", ""}

	s, _ := opened(t, conflict, missing, conflict, done) // done: there is an object
	require.Equal(t, cell.ErrTaken, s.Put(t.Context(), "name", nil))
	s, _ = opened(t, conflict, missing, done) // done: it is written
	require.NoError(t, s.Put(t.Context(), "name", nil))
	s, _ = opened(t, conflict, answer{http.StatusForbidden, "AccessDenied", ""})
	require.ErrorContains(t, s.Put(t.Context(), "name", nil), "access denied")
	s, _ = opened(t, conflict, missing, conflict, missing, conflict, missing, conflict, missing, conflict, missing)
	require.EqualError(t, s.Put(t.Context(), "name", nil),
		"bucket results, object study/name: other requests for it did not end: try again later")
}

func TestObjectsInMissingBucketsAreErrors(t *testing.T) {
	gone := answer{http.StatusNotFound, "NoSuchBucket", ""}
	s, _ := opened(t, gone, gone, gone)
	_, err := s.Get(t.Context(), "name")
	require.EqualError(t, err, "bucket results, object study/name: no such bucket: create it, or correct its name")
	_, err = s.Names(t.Context(), "")
	require.ErrorContains(t, err, "no such bucket")
	require.ErrorContains(t, s.Remove(t.Context(), "name"), "no such bucket")

	missing := answer{http.StatusNotFound, "NoSuchKey", ""}
	s, _ = opened(t, missing, missing)
	_, err = s.Get(t.Context(), "name")
	require.Equal(t, cell.ErrMissing, err)
	require.NoError(t, s.Remove(t.Context(), "name"))
}

func TestServersThatReplaceObjectsAreRefused(t *testing.T) {
	location := serve(t, func(http.ResponseWriter, *http.Request) {})
	_, err := store.Open(t.Context(), location)
	require.EqualError(t, err, "store: bucket results: the server at "+os.Getenv("AWS_ENDPOINT_URL_S3")+
		" ignores If-None-Match and replaces existing objects: use a server with conditional writes")
}

func TestRequestsAreConditionalAndOfTheRegion(t *testing.T) {
	var puts atomic.Int32
	location := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Has("location") {
			_, _ = w.Write([]byte(`<LocationConstraint>eu-west-1</LocationConstraint>`))
			return
		}
		puts.Add(1)
		if r.Header.Get("If-None-Match") != "*" || r.URL.Path != "/results/study/probe/if-none-match" ||
			r.Header.Get("X-Amz-Security-Token") != token ||
			!strings.Contains(r.Header.Get("Authorization"), "/eu-west-1/s3/") {
			w.WriteHeader(http.StatusTeapot)
			return
		}
		w.WriteHeader(http.StatusPreconditionFailed)
	})
	t.Setenv("AWS_REGION", "") // the bucket's
	_, err := store.Open(t.Context(), location)
	require.NoError(t, err)
	require.EqualValues(t, 1, puts.Load())
	_, err = store.Open(t.Context(), location+"?region=eu-west-1")
	require.NoError(t, err)
}

func TestRequestsEndWithTheirContext(t *testing.T) {
	var s cell.Store
	ctx, cancel := context.WithCancel(t.Context())
	location := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPut && strings.HasSuffix(r.URL.Path, "match") {
			w.WriteHeader(http.StatusPreconditionFailed)
			return
		}
		cancel()
		<-r.Context().Done()
	})
	s, err := store.Open(ctx, location)
	require.NoError(t, err)
	_, err = s.Get(ctx, "name")
	require.Equal(t, context.Canceled, err)
}

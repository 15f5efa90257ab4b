# The image of a release, which GoReleaser builds: a static program, its licenses and the recorded runs of the documentation.
# The traces of "vramyard compare" are inside the program, so the image alone repeats the tables of a paper:
#
#   docker run --rm -v "$PWD:/data" ghcr.io/vramyard/vramyard:0.2.0 whatif run.pickle
#
# From a clone: CGO_ENABLED=0 go build -tags nocuda -o linux/amd64/vramyard ./cmd/vramyard && docker build .
FROM scratch
ARG TARGETPLATFORM=linux/amd64
COPY LICENSE cli/notices.txt /licenses/
COPY examples/oom /examples/oom
# With the roots of TLS, for stores in a bucket of S3.
COPY --from=gcr.io/distroless/static-debian12 /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/
COPY $TARGETPLATFORM/vramyard /vramyard
WORKDIR /data
ENTRYPOINT ["/vramyard"]

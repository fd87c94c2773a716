# syntax=docker/dockerfile:1
# The operator's image, for those who have Docker: docker build -t localhost/cnmsql:dev .
# `go run ./tools/image operator` makes an equal one without Docker.
FROM --platform=$BUILDPLATFORM golang:1.26 AS build
ARG TARGETOS=linux TARGETARCH VERSION=dev
WORKDIR /src
COPY go.mod go.sum ./
RUN --mount=type=cache,target=/go/pkg/mod go mod download
COPY . .
# Static, because the final image has no libc; -trimpath and an empty build id, so that equal sources give equal binaries.
RUN --mount=type=cache,target=/go/pkg/mod --mount=type=cache,target=/root/.cache/go-build \
    CGO_ENABLED=0 GOOS=$TARGETOS GOARCH=$TARGETARCH \
    go build -trimpath -ldflags="-s -w -buildid= -X cnmsql.co/internal/version.Version=$VERSION" -o /cnmsql ./cmd/cnmsql

# What `make demo` runs on a Kubernetes of yours: --target demo. The writer is what counts the rows.
FROM build AS build-demo
ARG TARGETOS TARGETARCH
RUN --mount=type=cache,target=/go/pkg/mod --mount=type=cache,target=/root/.cache/go-build \
    CGO_ENABLED=0 GOOS=$TARGETOS GOARCH=$TARGETARCH \
    go build -trimpath -ldflags="-s -w -buildid=" -o /writer ./test/writer/cmd/writer

FROM scratch AS demo
COPY --from=build-demo /cnmsql /writer /
USER 65532:65532
WORKDIR /
ENTRYPOINT ["/cnmsql"]

FROM scratch
COPY --from=build /cnmsql /cnmsql
USER 65532:65532
WORKDIR /
ENTRYPOINT ["/cnmsql"]

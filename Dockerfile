# Ferry as one static binary, as config/manager runs it. Its version comes from git, or from --build-arg VERSION=v1.2.3.
FROM golang:1.26 AS build
ARG VERSION=
WORKDIR /src
COPY . .
RUN git config --global --add safe.directory /src && \
    CGO_ENABLED=0 go build -trimpath -ldflags "-s -w -X main.version=${VERSION}" -o /ferry ./cmd/ferry

FROM gcr.io/distroless/static:nonroot
COPY --from=build /ferry /ferry
USER 65532:65532
ENTRYPOINT ["/ferry"]

# Ferry as one static binary, as config/manager runs it.
FROM golang:1.26 AS build
WORKDIR /src
COPY . .
RUN CGO_ENABLED=0 go build -trimpath -ldflags "-s -w" -o /ferry ./cmd/ferry

FROM gcr.io/distroless/static:nonroot
COPY --from=build /ferry /ferry
USER 65532:65532
ENTRYPOINT ["/ferry"]

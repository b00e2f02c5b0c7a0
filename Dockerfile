# leadonce as an image: one static binary, no shell, not root. Its configuration is
# /etc/leadonce/leadonce.yaml, which user 65532 must be able to read, and its data
# is in /data. docker-compose.yml shows it at work.

FROM --platform=$BUILDPLATFORM golang:1.26.8-bookworm@sha256:a688600ca24f8a4d3ca77f95b0dd40704a9fc787c826660eb7ba0b641b8b175d AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
ARG TARGETOS TARGETARCH
RUN CGO_ENABLED=0 GOOS=$TARGETOS GOARCH=$TARGETARCH go build -trimpath -o /out/leadonce ./cmd/leadonce && mkdir /out/data

# It brings the authorities that sign the certificates of CRMs, and a user
# without rights.
FROM gcr.io/distroless/static-debian12:nonroot@sha256:d093aa3e30dbadd3efe1310db061a14da60299baff8450a17fe0ccc514a16639
COPY --from=build /out/leadonce /leadonce
# A new volume takes the owner of the folder that it is mounted on.
COPY --from=build --chown=65532:65532 /out/data /data
USER 65532:65532
WORKDIR /data
VOLUME /data
ENV LEADONCE_CONFIG=/etc/leadonce/leadonce.yaml LEADONCE_DATA_DIR=/data LEADONCE_LISTEN=0.0.0.0:8080
EXPOSE 8080
HEALTHCHECK --interval=10s --timeout=15s --start-period=60s --retries=3 CMD ["/leadonce", "health"]
ENTRYPOINT ["/leadonce"]
CMD ["serve"]

# syntax=docker/dockerfile:1
#
# docker build --build-arg NODE_DIGEST=sha256:… --build-arg REVISION="$(git rev-parse HEAD)" --tag sallyport:0.2.0-dev .
#
# One base image, pinned by digest and never by tag alone. There is no default, so that nobody builds on one that nobody looked at.
# To renew it, for the security fixes of Node.js: docker buildx imagetools inspect node:24-bookworm-slim --format '{{.Manifest.Digest}}'
ARG NODE_DIGEST

FROM node:24-bookworm-slim@${NODE_DIGEST} AS build
WORKDIR /build
COPY package.json package-lock.json .npmrc tsconfig.json ./
RUN npm ci --ignore-scripts
COPY src ./src
COPY .release/bundle.mjs ./.release/bundle.mjs
COPY .release/revision.mjs ./.release/revision.mjs
ARG REVISION=unknown
# The bundle holds production code only; sbom.cdx.json in it names every package that went in.
RUN npm run build -- "${REVISION}" && npm run bundle
# Compiled code of start and health check is kept beside it, so that a container need not compile it again.
RUN mv bundle /app \
 && NODE_COMPILE_CACHE=/app/cache node /app/main.js health --help > /dev/null \
 && NODE_COMPILE_CACHE=/app/cache node /app/main.js serve --help > /dev/null
# The rest of the image: node and the libraries that it asks for. No shell, no package manager, nothing to write to.
RUN mkdir -p /image/usr/local/bin /image/etc/sallyport \
 && cp "$(command -v node)" /image/usr/local/bin/node \
 && ldd /image/usr/local/bin/node | grep -o '/[^ ]*' | xargs -I{} cp --parents -L {} /image

FROM scratch
ARG NODE_DIGEST
ARG VERSION=0.2.0-dev
ARG REVISION=unknown
LABEL org.opencontainers.image.title="sallyport" \
      org.opencontainers.image.description="Auth sidecar: verifies service tokens, authorizes each operation and stops replays in front of one service" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.base.name="node:24-bookworm-slim" \
      org.opencontainers.image.base.digest="${NODE_DIGEST}"
COPY --from=build /image /
COPY --from=build /app /app
ENV NODE_COMPILE_CACHE=/app/cache
# A number, so that Kubernetes can see that it is not root.
USER 65532:65532
EXPOSE 8443 9902
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=5s --start-period=20s --retries=3 \
  CMD ["/usr/local/bin/node", "/app/main.js", "health", "--config", "/etc/sallyport/sallyport.yaml"]
# No shell in between: SIGTERM reaches the process. Without SIGUSR1 nobody in the pod opens the debugger.
ENTRYPOINT ["/usr/local/bin/node", "--disable-sigusr1", "/app/main.js"]
CMD ["serve", "--config", "/etc/sallyport/sallyport.yaml"]

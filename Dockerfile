# The proxy:                                docker build --tag sallyport:0.2.0-dev .
# With the tools beside it (core, dev, import): docker build --target tools --tag sallyport-tools:0.2.0-dev .
#
# As it stands it takes the newest base image of that tag. For a release name the digest too, so that what was looked at is what is built on:
#
#   docker buildx imagetools inspect node:24-bookworm-slim --format '{{.Manifest.Digest}}'
#   docker build --build-arg NODE_DIGEST=sha256:… --build-arg REVISION="$(git rev-parse HEAD)" --tag sallyport:0.2.0-dev .
#
# NODE_IMAGE may name a mirror of that image; it has to be Debian's with Node.js in /usr/local.
ARG NODE_IMAGE=node:24-bookworm-slim
ARG NODE_DIGEST=

FROM ${NODE_IMAGE}${NODE_DIGEST:+@$NODE_DIGEST} AS build
WORKDIR /build
COPY package.json package-lock.json .npmrc tsconfig.json LICENSE ./
RUN npm ci --ignore-scripts
COPY src ./src
COPY .release ./.release
ARG REVISION=unknown
# The bundle holds production code only; sbom.cdx.json in it names every package that went in, and THIRD-PARTY-NOTICES has their licences.
RUN npm run build -- "${REVISION}" && npm run bundle
# Compiled code of start and health check is kept beside it, so that a container need not compile it again. Help loads none of it: the one
# finds no proxy (exit code 3) and the other no config (2), after both have loaded what they run.
RUN mv bundle /app \
 && { NODE_COMPILE_CACHE=/app/cache node /app/main.js health --url http://127.0.0.1:1 2> /dev/null || [ $? -eq 3 ]; } \
 && { NODE_COMPILE_CACHE=/app/cache node /app/main.js serve --config /none 2> /dev/null || [ $? -eq 2 ]; }
# The rest of the image: node, the libraries that it asks for, and their licences. No shell, no package manager, nothing to write to.
RUN mkdir -p /image/usr/local/bin /image/etc/sallyport \
 && cp "$(command -v node)" /image/usr/local/bin/node \
 && cp "$(dirname "$(command -v node)")/../LICENSE" /image/usr/local/LICENSE \
 && cp -r --parents /usr/share/common-licenses /image \
 && sh .release/libraries.sh /image /image/usr/local/bin/node

# The same with the emulator of the Core and the import of users, the native modules that check their passwords, and the libraries of those.
FROM build AS build-tools
RUN rm -r /app && npm run bundle -- --tools && mv bundle /app && sh .release/libraries.sh /image /app/node_modules/@node-rs/*/*.node

# What both images are but for their files.
FROM scratch AS settings
ARG NODE_IMAGE
ARG NODE_DIGEST
ARG VERSION=0.2.0-dev
ARG REVISION=unknown
# Where whoever builds it keeps the source and its docs. No address is made up: without SOURCE_URL these labels are empty.
ARG SOURCE_URL=
ARG DOCUMENTATION_URL=${SOURCE_URL}
LABEL org.opencontainers.image.title="sallyport" \
      org.opencontainers.image.description="Auth sidecar: verifies service tokens, authorizes each operation and stops replays in front of one service" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.url="${SOURCE_URL}" \
      org.opencontainers.image.source="${SOURCE_URL}" \
      org.opencontainers.image.documentation="${DOCUMENTATION_URL}" \
      org.opencontainers.image.base.name="${NODE_IMAGE}" \
      org.opencontainers.image.base.digest="${NODE_DIGEST}"
ENV NODE_COMPILE_CACHE=/app/cache
# One pool for what is allocated outside of V8's heap, instead of one a thread: next to nothing is allocated on two at once.
ENV MALLOC_ARENA_MAX=1
# A number, so that Kubernetes can see that it is not root.
USER 65532:65532
EXPOSE 8443 9902
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=5s --start-period=20s --retries=3 \
  CMD ["/usr/local/bin/node", "/app/main.js", "health", "--config", "/etc/sallyport/sallyport.yaml"]
# No shell in between: SIGTERM reaches the process. Without SIGUSR1 nobody in the pod opens the debugger. What a request leaves behind is
# collected when there are 4 MiB of it; by itself Node.js 24 lets it grow to 64.
ENTRYPOINT ["/usr/local/bin/node", "--disable-sigusr1", "--max-semi-space-size=4", "/app/main.js"]
CMD ["serve", "--config", "/etc/sallyport/sallyport.yaml"]

FROM settings AS tools
LABEL org.opencontainers.image.title="sallyport-tools" \
      org.opencontainers.image.description="Sallyport with the emulator of the Core and the import of users: for trying out and for moving users, not for production traffic"
COPY --from=build-tools /image /
COPY --from=build-tools /app /app

# The last one is what is built without --target.
FROM settings AS proxy
COPY --from=build /image /
COPY --from=build /app /app

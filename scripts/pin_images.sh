#!/bin/sh
# Prints the digests of the base images as settings for .env: `scripts/pin_images.sh >> .env`. A tag may be moved to
# another image, a digest cannot. It asks the registry, so it runs where a release is built.
set -eu

for image in PYTHON_IMAGE=python:3.11.11-slim-bookworm POSTGRES_IMAGE=postgres:17.2-bookworm REDIS_IMAGE=redis:7.4.1-bookworm; do
    tag=${image#*=}
    docker pull --quiet "$tag" >&2
    digest=$(docker image inspect --format '{{index .RepoDigests 0}}' "$tag")
    printf '%s=%s\n' "${image%%=*}" "$digest"
done

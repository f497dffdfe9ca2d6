/** Reads what gRPC services there are, from `.proto` files and from descriptor sets. */
import { dirname, join } from 'node:path';
import { pathIn, type Folder } from '../../lib/files.js';
import { readBytes } from '../../adapters/files/read-file.js';
import type { GrpcApi, GrpcMethodKind } from '../../config/checks/grpc-api.js';
import { accept, refuse, type Result } from '../../lib/result.js';

/** Larger than any descriptor set of one service, with all that it imports. */
const maxFileBytes = 64 * 1024 * 1024;

/** More files are a loop of links, or no `.proto` of a service. */
const maxFiles = 10_000;

type Services = Map<string, ReadonlyMap<string, GrpcMethodKind>>;

interface DeclaredService {
  readonly name: string;
  readonly methods: ReadonlyMap<string, GrpcMethodKind>;
}

/** What one file holds. */
interface ProtoFile {
  readonly services: readonly DeclaredService[];
  readonly imports: readonly string[];
}

/**
 * Reads files that end in `.proto`, and others as a binary `FileDescriptorSet`, as `protoc --descriptor_set_out` and
 * `buf build` write it. Imports of a `.proto` are looked up in its folder and in those above; one that is nowhere is
 * left out, as most import types alone.
 *
 * @param files paths, from `folder` where they are relative.
 * @returns a refusal says in words which file cannot be read, and why.
 */
export async function readGrpcApi(files: readonly string[], folder: Folder): Promise<Result<GrpcApi, string>> {
  const services: Services = new Map();
  const named = new Set<string>();
  for (const file of files) {
    const path = pathIn(folder, file);
    const read = file.endsWith('.proto') ? await readProto(path) : await readDescriptorSet(path);
    if (!read.ok) return refuse(`${file}: ${read.error}`);
    for (const { name, methods } of read.value.services) {
      services.set(name, methods);
      named.add(name);
    }
    await readImports(path, read.value.imports, services);
  }
  return accept({ services, named });
}

/** Imported services exist, and nobody asked whether they have routes. */
async function readImports(from: string, names: readonly string[], services: Services): Promise<void> {
  const seen = new Set([from]);
  const queue = names.map((name) => ({ name, from }));
  for (let next = queue.shift(); next !== undefined && seen.size < maxFiles; next = queue.shift()) {
    for (const path of placesOf(next.name, next.from)) {
      const read = seen.has(path) ? null : await readProto(path);
      if (read?.ok === false) continue;
      seen.add(path);
      for (const { name, methods } of read?.value.services ?? []) if (!services.has(name)) services.set(name, methods);
      queue.push(...(read?.value.imports ?? []).map((name) => ({ name, from: path })));
      break;
    }
  }
}

/** Where an import may be: its name begins at the root of the sources, which is the file's folder or one above. */
function placesOf(name: string, from: string): readonly string[] {
  const places: string[] = [];
  for (let folder = dirname(from); ; folder = dirname(folder)) {
    places.push(join(folder, name));
    if (folder === dirname(folder)) return places;
  }
}

async function readProto(path: string): Promise<Result<ProtoFile, string>> {
  const bytes = await readBytes(path, { maxBytes: maxFileBytes });
  if (!bytes.ok) return bytes;
  const { default: protobuf } = await import('protobufjs');
  try {
    const parsed = protobuf.parse(bytes.value.toString('utf8'), new protobuf.Root(), { keepCase: true });
    const services: DeclaredService[] = [];
    collect(parsed.root);
    return accept({ services, imports: [...(parsed.imports ?? []), ...(parsed.weakImports ?? [])] });

    function collect(scope: InstanceType<typeof protobuf.NamespaceBase>): void {
      for (const inner of scope.nestedArray) {
        if (inner instanceof protobuf.Service) services.push(serviceOf(inner));
        if (inner instanceof protobuf.Namespace) collect(inner);
      }
    }
  } catch (error) {
    return refuse(error instanceof Error ? error.message : 'cannot be parsed');
  }
}

/** A service of protobufjs; its full name begins with a dot. */
function serviceOf(service: {
  readonly fullName: string;
  readonly methodsArray: readonly {
    readonly name: string;
    readonly requestStream?: boolean | undefined;
    readonly responseStream?: boolean | undefined;
  }[];
}): DeclaredService {
  return {
    name: service.fullName.replace(/^\./, ''),
    methods: new Map(
      service.methodsArray.map(({ name, requestStream, responseStream }) => [
        name,
        { streamsRequests: requestStream === true, streamsResponses: responseStream === true },
      ]),
    ),
  };
}

async function readDescriptorSet(path: string): Promise<Result<ProtoFile, string>> {
  const bytes = await readBytes(path, { maxBytes: maxFileBytes });
  if (!bytes.ok) return bytes;
  const { default: descriptor } = await import('protobufjs/ext/descriptor.js');
  try {
    const { file } = descriptor.FileDescriptorSet.toObject(descriptor.FileDescriptorSet.decode(bytes.value)) as SetFile;
    if (file === undefined) return refuse('holds no file; allowed: a .proto, or a binary FileDescriptorSet');
    const services = file.flatMap(({ package: scope, service = [] }) =>
      service.map(({ name, method = [] }) => ({
        name: scope === undefined || scope === '' ? name : `${scope}.${name}`,
        methods: new Map(
          method.map(({ name: each, clientStreaming, serverStreaming }) => [
            each,
            { streamsRequests: clientStreaming === true, streamsResponses: serverStreaming === true },
          ]),
        ),
      })),
    );
    return accept({ services, imports: [] });
  } catch {
    return refuse('is no binary FileDescriptorSet; allowed: that, or a file that ends in .proto');
  }
}

/** As much of google/protobuf/descriptor.proto as is read here. */
interface SetFile {
  readonly file?: readonly {
    readonly package?: string;
    readonly service?: readonly {
      readonly name: string;
      readonly method?: readonly {
        readonly name: string;
        readonly clientStreaming?: boolean;
        readonly serverStreaming?: boolean;
      }[];
    }[];
  }[];
}

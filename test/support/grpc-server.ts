/** A server of gRPC as programs on Node.js have it: `@grpc/grpc-js`, without generated code. */
import {
  Server,
  ServerCredentials,
  type handleUnaryCall,
  type MethodDefinition,
  type UntypedServiceImplementation,
} from '@grpc/grpc-js';
import type { Scope } from './scope.js';

/** A method of bytes: what a message means is nobody's concern here. */
export function bytesMethod(
  path: string,
  requestStream = false,
  responseStream = false,
): MethodDefinition<Buffer, Buffer> {
  const asIs = (bytes: Buffer): Buffer => bytes;
  return {
    path,
    requestStream,
    responseStream,
    requestSerialize: asIs,
    requestDeserialize: asIs,
    responseSerialize: asIs,
    responseDeserialize: asIs,
  };
}

export interface GrpcServer {
  readonly port: number;
  /** Breaks off what is under way. */
  readonly kill: () => void;
}

/** Serves methods, by their path, over HTTP/2 without TLS on a free port of loopback. */
export async function startGrpcServer(
  t: Scope,
  methods: Readonly<Record<string, handleUnaryCall<Buffer, Buffer>>>,
): Promise<GrpcServer> {
  const server = new Server();
  const handlers: UntypedServiceImplementation = methods;
  server.addService(Object.fromEntries(Object.keys(methods).map((path) => [path, bytesMethod(path)])), handlers);
  const port = await new Promise<number>((resolve, reject) => {
    server.bindAsync('127.0.0.1:0', ServerCredentials.createInsecure(), (error, bound) => {
      if (error === null) resolve(bound);
      else reject(error);
    });
  });
  t.teardown(() => server.forceShutdown());
  return { port, kill: () => server.forceShutdown() };
}

import type { Registry } from 'prom-client';
import type { Readiness } from '../admin/readiness.js';
import type { RouteInput } from '../config/sections/routes/routes.js';

/** What the plugin is registered with. */
export interface SallyportOptions {
  /**
   * The config, in the format of the sidecar's: the path of its file, its text (which has more than one line), or the
   * value that the text would be. `listen`, `upstream` and `admin` may be left out, and `routes` where each route has
   * its policy beside it.
   */
  readonly config: string | URL | object;
  /** For placeholders `${env:NAME}`; the environment of the process unless given. */
  readonly env?: Readonly<Record<string, string | undefined>>;
  /** Whether a config file that changes is taken while the application runs; unless given it is. */
  readonly watch?: boolean;
  /**
   * What becomes of a route of the application that no policy covers: the start fails and names it, or it is refused to
   * everybody. `fail` unless given.
   */
  readonly uncovered?: 'fail' | 'refuse';
  /** The application's registry of metrics; one of its own unless given. */
  readonly registry?: Registry;
}

/** A policy beside a route: the keys of a route of the config, without what the route itself says. */
export type RoutePolicy = Omit<RouteInput, 'name' | 'methods' | 'path' | 'grpc' | 'websocket' | 'origins'> & {
  /** Unique name: in logs, metrics and problems. Unless given, the route's methods and path. */
  readonly name?: string;
};

/** Who calls, as the decision found. */
export interface RequestPrincipal {
  readonly kind: 'service' | 'session';
  /** Name of the issuer in the config. */
  readonly issuerName: string;
  /** The claim `iss`. */
  readonly issuer: string;
  /** The claim `sub`. */
  readonly subject: string;
  readonly permissions: readonly string[];
  /** The claim `jti`; `null` where there is none. */
  readonly tokenId: string | null;
  /** Seconds since the epoch. */
  readonly expiresAt: number;
}

/** What the plugin adds to the application. */
export interface SallyportState {
  /** What `/readyz` of a sidecar says. */
  readonly readiness: () => Readiness;
  /** The metrics in Prometheus' text format: of the whole registry, where one was given. */
  readonly metrics: () => Promise<string>;
  /** Reads the config again; settles when that is over, good or bad. */
  readonly reload: () => Promise<void>;
}

declare module 'fastify' {
  interface FastifyRequest {
    /** Who calls; `null` on public routes, in shadow mode where nobody is known, and before the decision. */
    principal: RequestPrincipal | null;
  }
  interface FastifyInstance {
    sallyport: SallyportState;
  }
  interface FastifyContextConfig {
    /** The policy of this route alone. */
    sallyport?: RoutePolicy;
  }
}

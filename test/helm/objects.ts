/** Parts of what the chart renders, as the tests look at them. */
import type { Manifest } from '../support/helm.js';

export interface Container {
  readonly name: string;
  readonly args?: readonly string[];
  readonly env?: readonly { readonly name: string; readonly value?: string }[];
  readonly restartPolicy?: string;
  readonly securityContext?: Readonly<Record<string, unknown>>;
  readonly volumeMounts?: readonly { readonly name: string; readonly mountPath: string; readonly readOnly?: boolean }[];
  readonly lifecycle?: unknown;
  readonly livenessProbe?: unknown;
  readonly readinessProbe?: unknown;
  readonly startupProbe?: unknown;
  readonly [field: string]: unknown;
}

export interface PodSpec {
  readonly containers: readonly Container[];
  readonly initContainers?: readonly Container[];
  readonly volumes?: readonly Readonly<Record<string, unknown>>[];
  readonly securityContext?: Readonly<Record<string, unknown>>;
  readonly terminationGracePeriodSeconds?: number;
  readonly automountServiceAccountToken?: boolean;
  readonly [field: string]: unknown;
}

export interface Template {
  readonly metadata: {
    readonly labels: Readonly<Record<string, string>>;
    readonly annotations: Readonly<Record<string, string>>;
  };
  readonly spec: PodSpec;
}

export interface Opening {
  readonly ports: readonly { readonly port: number }[];
  readonly from: readonly unknown[];
}

export interface ServiceSpec {
  readonly type?: string;
  readonly ports: readonly {
    readonly name: string;
    readonly port: number;
    readonly targetPort: number;
    readonly appProtocol?: string;
  }[];
  readonly selector: Readonly<Record<string, string>>;
}

export function templateOf(manifest: Manifest): Template {
  return (manifest['spec'] as { readonly template: Template }).template;
}

export function serviceSpecOf(manifest: Manifest): ServiceSpec {
  return manifest['spec'] as ServiceSpec;
}

/** The openings of a NetworkPolicy. */
export function openingsOf(manifest: Manifest): readonly Opening[] {
  return (manifest['spec'] as { readonly ingress: readonly Opening[] }).ingress;
}

/** The config file in a ConfigMap; empty where it has none. */
export function fileOf(manifest: Manifest): string {
  return (manifest['data'] as Readonly<Record<string, string>>)['sallyport.yaml'] ?? '';
}

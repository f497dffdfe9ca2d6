/** Values that the tests render the chart with. */
import type { Values } from '../support/helm.js';

export const config: Values = {
  upstream: { url: 'http://127.0.0.1:3000' },
  issuers: {
    core: { issuer: 'https://api.example.com', audience: 'orders', source: 'microservice', token_type: 'service' },
  },
  routes: [
    { name: 'list-orders', methods: ['GET'], path: '/orders', subjects: ['checkout'], permissions: ['orders:read'] },
  ],
};

export const tls: Values = { secretName: 'orders-tls' };

const container: Values = { name: 'orders', image: 'orders:1.4.0', env: [{ name: 'HOST', value: '127.0.0.1' }] };

/** Everything that operators add to the pod and to Sallyport's container. */
export const extras = {
  extraEnv: [
    { name: 'NODE_EXTRA_CA_CERTS', value: '/etc/private-ca/ca.crt' },
    { name: 'POD', valueFrom: { fieldRef: { fieldPath: 'metadata.name' } } },
  ],
  extraEnvFrom: [{ configMapRef: { name: 'settings' } }],
  extraVolumes: [{ name: 'scratch', emptyDir: {} }],
  extraVolumeMounts: [{ name: 'scratch', mountPath: '/scratch' }],
  configMapFiles: [{ configMapName: 'private-ca', mountPath: '/etc/private-ca' }],
  extraInitContainers: [
    { name: 'fetch-ca', image: 'tools:1', volumeMounts: [{ name: 'scratch', mountPath: '/scratch' }] },
  ],
  extraContainers: [{ name: 'log-shipper', image: 'logs:1' }],
};

/** The calling side, with a token that Kubernetes projects. */
export const calling: Values = {
  tokens: { cluster: { file: '/var/run/secrets/sallyport/tokens/billing' } },
  targets: [
    {
      name: 'billing',
      prefix: '/billing',
      url: 'https://billing.shop.svc',
      token: 'cluster',
      allow: [{ methods: ['GET', 'POST'], path: '/**' }],
    },
  ],
};

/** Files and places of the calling side. */
export const callingPlaces = {
  socket: { enabled: true, mountPath: '/run/calls' },
  serviceAccountTokens: [{ name: 'billing', audience: 'billing', expirationSeconds: 600 }],
};

/** Each is a chart that somebody may want. */
export const matrix: readonly { readonly name: string; readonly values: Values }[] = [
  { name: 'alone', values: { config, tls } },
  {
    name: 'a drain that only Sallyport can read',
    values: { config: { ...config, shutdown: { grace: '${env:GRACE}' } }, tls },
  },
  {
    name: 'ports of the config that are those of the values',
    values: {
      config: {
        ...config,
        listen: { port: 8443, tls: { client_ca_file: '/ca.crt' } },
        probes: { port: 9902 },
        admin: { port: 9903 },
      },
      tls,
    },
  },
  {
    name: 'behind a container of the pod that ends TLS on the port of callers',
    values: {
      config: {
        ...config,
        listen: { host: '127.0.0.1', port: 8080, tls_terminated_by: 'nginx', trust_forwarded: ['127.0.0.1'] },
      },
      extraContainers: [{ name: 'nginx', image: 'nginx:1', ports: [{ containerPort: 8443 }] }],
    },
  },
  {
    name: 'behind a native sidecar that ends TLS on the port of callers',
    values: {
      config: { ...config, listen: { host: '::1', port: 8080, tls_terminated_by: 'nginx' } },
      extraInitContainers: [{ name: 'nginx', image: 'nginx:1', restartPolicy: 'Always' }],
    },
  },
  {
    name: 'callers on loopback, where no Service leads to them',
    values: {
      config: { ...config, listen: { host: '127.0.0.1', port: 8080, tls_terminated_by: 'nginx' } },
      service: { enabled: false },
    },
  },
  {
    name: 'a host of each listener that only Sallyport can read',
    values: { config: { ...config, listen: { host: '${env:HOST}' }, probes: { host: '${env:HOST}' } }, tls },
  },
  {
    name: 'a config that is to end with a marker',
    values: { config: { ...config, reload: { end_marker: 'required' } }, tls },
  },
  { name: 'behind a mesh', values: { config, tls: { terminatedBy: 'istio' } } },
  {
    name: 'HTTP/2 behind a mesh',
    values: {
      config: { ...config, listen: { http2: true }, upstream: { url: 'http://127.0.0.1:3000', http2: true } },
      tls: { terminatedBy: 'istio' },
      service: { appProtocol: 'kubernetes.io/h2c' },
    },
  },
  {
    name: 'TLS of the config',
    values: { config: { ...config, listen: { tls: { cert_file: '/a.crt', key_file: '/a.key' } } } },
  },
  {
    name: 'beside the service',
    values: {
      config,
      tls,
      receiver: { container, probes: { startup: '/healthz', live: '/healthz', ready: '/ready' } },
    },
  },
  {
    name: 'beside a service that says it all itself',
    values: {
      config,
      tls,
      receiver: {
        container: {
          ...container,
          lifecycle: { preStop: { exec: { command: ['/drain'] } } },
          livenessProbe: { exec: { command: ['/alive'] } },
          securityContext: { runAsUser: 1000 },
          volumeMounts: [{ name: 'data', mountPath: '/data' }],
        },
        probes: { live: '/healthz' },
        preStopSleepSeconds: 0,
        volumes: [{ name: 'data', emptyDir: {} }],
      },
    },
  },
  {
    name: 'both directions, beside the service',
    values: { config: { ...config, egress: calling }, tls, receiver: { container }, ports: { egress: 8282 } },
  },
  {
    name: 'both directions, by a socket, more of everything',
    values: { config: { ...config, egress: calling }, tls, ...extras, receiver: { container }, egress: callingPlaces },
  },
  {
    name: 'the calling side alone',
    values: { config: { egress: calling }, receiver: { container }, egress: callingPlaces },
  },
  {
    name: 'the calling side alone, beside a container of their own',
    values: { config: { egress: calling }, extraContainers: [{ name: 'job', image: 'job:1' }] },
  },
  {
    name: "in somebody else's pod",
    values: { config, tls, sidecar: { enabled: true, podLabels: { app: 'orders', tier: '1' } } },
  },
  { name: 'a ConfigMap of their own', values: { existingConfigMap: 'policy', tls } },
  {
    name: 'everything on',
    values: {
      config: {
        ...config,
        store: { redis: { url: 'rediss://redis:6379', password_file: '/run/secrets/redis/password' } },
      },
      tls,
      fullnameOverride: 'gate',
      image: { repository: 'registry.example.com:5000/sallyport', tag: '0.1.0', digest: `sha256:${'a'.repeat(64)}` },
      imagePullSecrets: [{ name: 'registry' }],
      secretEnv: [{ name: 'CORE_API_KEY', secretName: 'core', key: 'api-key' }],
      secretFiles: [{ secretName: 'redis', mountPath: '/run/secrets/redis' }],
      receiver: { container, probes: { live: '/healthz' } },
      podAnnotations: { 'example.com/team': 'orders' },
      podLabels: { team: 'orders' },
      nodeSelector: { pool: 'a' },
      tolerations: [{ key: 'dedicated', operator: 'Exists' }],
      priorityClassName: 'high',
      affinity: {
        podAntiAffinity: {
          preferredDuringSchedulingIgnoredDuringExecution: [{ weight: 1, podAffinityTerm: { topologyKey: 'zone' } }],
        },
      },
      topologySpreadConstraints: [
        { maxSkew: 1, topologyKey: 'kubernetes.io/hostname', whenUnsatisfiable: 'ScheduleAnyway' },
      ],
      serviceAccount: { create: true, name: 'gate', annotations: { a: 'b' } },
      service: {
        type: 'LoadBalancer',
        port: 8443,
        nodePort: 30443,
        externalTrafficPolicy: 'Local',
        loadBalancerClass: 'example.com/internal',
        loadBalancerSourceRanges: ['203.0.113.0/24'],
        annotations: { a: 'b' },
        labels: { tier: 'edge' },
      },
      autoscaling: { enabled: true, minReplicas: 3, maxReplicas: 9 },
      podDisruptionBudget: { maxUnavailable: '25%' },
      networkPolicy: {
        callers: [{ podSelector: { matchLabels: { app: 'checkout' } } }],
        callerCidrs: ['203.0.113.0/24'],
        monitors: [{ namespaceSelector: { matchLabels: { name: 'monitoring' } } }],
        egress: [{ to: [{ ipBlock: { cidr: '10.0.0.0/8' } }], ports: [{ port: 443 }] }],
      },
      metrics: {
        service: { annotations: { 'prometheus.io/scrape': 'true' }, labels: { scrape: 'here' } },
        serviceMonitor: { enabled: true, interval: '15s', labels: { release: 'prometheus' } },
        prometheusRule: { enabled: true, labels: { release: 'prometheus' } },
        dashboard: { enabled: true },
      },
    },
  },
  { name: 'more of everything, alone', values: { config, tls, ...extras } },
  { name: 'more of everything, beside the service', values: { config, tls, ...extras, receiver: { container } } },
  {
    name: 'as little as can be',
    values: {
      config,
      tls: { terminatedBy: 'linkerd' },
      service: { enabled: false },
      networkPolicy: { enabled: false },
      podDisruptionBudget: { enabled: false },
      serviceAccount: { create: false },
      resources: {},
      replicaCount: 1,
    },
  },
];

export const refused: readonly { readonly name: string; readonly values: Values; readonly says: RegExp }[] = [
  { name: 'nobody ends TLS', values: { config }, says: /say who ends TLS/ },
  { name: 'no route', values: { config: { ...config, routes: [] }, tls }, says: /config\.routes: at least one route/ },
  { name: 'no service', values: { config: { ...config, upstream: {} }, tls }, says: /config\.upstream\.url/ },
  { name: 'a sidecar of nobody', values: { config, tls, sidecar: { enabled: true } }, says: /sidecar\.podLabels/ },
  {
    name: "a service of the chart's pods in somebody else's",
    values: { config, tls, sidecar: { enabled: true, podLabels: { app: 'orders' } }, receiver: { container } },
    says: /receiver\.container: with sidecar\.enabled this chart makes no pod/,
  },
  {
    name: 'a calling side that nobody can reach',
    values: { config: { ...config, egress: calling }, tls },
    says: /config\.egress: its listener is the pod's own/,
  },
  {
    name: 'TLS where nobody calls',
    values: { config: { egress: calling }, tls, receiver: { container } },
    says: /tls: config\.egress stands alone/,
  },
  {
    name: 'probes of a service that nobody calls',
    values: { config: { egress: calling }, receiver: { container, probes: { live: '/healthz' } } },
    says: /receiver\.probes: config\.egress stands alone/,
  },
  {
    name: 'a socket beside a port',
    values: {
      config: { ...config, egress: { ...calling, listen: { port: 1 } } },
      tls,
      receiver: { container },
      egress: callingPlaces,
    },
    says: /config\.egress\.listen\.port: egress\.socket\.enabled/,
  },
  {
    name: 'something mounted over the socket',
    values: {
      config: { ...config, egress: calling },
      tls,
      receiver: { container },
      egress: callingPlaces,
      secretFiles: [{ secretName: 'core', mountPath: '/run/calls/secrets' }],
    },
    says: /"\/run\/calls\/secrets": \/run\/calls is Sallyport's own/,
  },
  {
    name: 'a token that ends too soon for kubelet',
    values: { config, tls, egress: { serviceAccountTokens: [{ name: 'a', audience: 'a', expirationSeconds: 60 }] } },
    says: /expirationSeconds/,
  },
  {
    name: 'percents of nothing',
    values: { config, tls, autoscaling: { enabled: true }, resources: { requests: null } },
    says: /resources\.requests\.cpu/,
  },
  { name: 'a misspelt key of the config', values: { config: { ...config, limts: {} }, tls }, says: /limts/ },
  {
    name: 'a misspelt key of a route',
    says: /routes\/0'.*permision/,
    values: { config: { ...config, routes: [{ name: 'a', methods: ['GET'], path: '/', permision: [] }] }, tls },
  },
  {
    name: 'a route without a name',
    says: /routes\/0\/name|routes\.0\.name/,
    values: {
      config: { ...config, routes: [{ name: '', methods: ['GET'], path: '/', subjects: ['a'], permissions: [] }] },
      tls,
    },
  },
  {
    name: 'no time to drain',
    says: /terminationGracePeriodSeconds: 60 is less than 70 s: shutdown\.delay, /,
    values: { config: { ...config, shutdown: { grace: '1m' } }, tls },
  },
  {
    name: 'no time to drain after the service',
    says: /60 is less than 65\.5 s: .*receiver\.preStopSleepSeconds and 5 s in which Sallyport ends/,
    values: { config: { ...config, shutdown: { delay: '500ms', grace: '50s' } }, tls, receiver: { container } },
  },
  {
    name: 'no time to end after that',
    says: /terminationGracePeriodSeconds: 34 is less than 35 s: /,
    values: { config, tls, terminationGracePeriodSeconds: 34 },
  },
  {
    name: 'another port of callers in the config',
    says: /config\.listen\.port: 443 is not ports\.proxy \(8443\)/,
    values: { config: { ...config, listen: { host: '0.0.0.0', port: 443 } }, tls },
  },
  {
    name: 'another port of probes in the config',
    says: /config\.probes\.port: 9999 is not ports\.probes \(9902\)/,
    values: { config: { ...config, probes: { port: 9999 } }, tls },
  },
  {
    name: 'a port of probes that the system chooses',
    says: /config\.probes\.port: 0 is not ports\.probes \(9902\)/,
    values: { config: { ...config, probes: { port: 0 } }, tls },
  },
  {
    name: 'another port of callers on one address of the pod',
    says: /config\.listen\.port: 8080 is not ports\.proxy \(8443\)/,
    values: { config: { ...config, listen: { host: '10.127.0.1', port: 8080 } }, tls },
  },
  ...['127.0.0.1', '::ffff:127.0.0.1'].map((host) => ({
    name: `callers on ${host}, with nobody in front`,
    says: /config\.listen\.host: .+ is reached by .+ alone, and none is in front; .+ where a mesh forwards .+ placeholder/,
    values: { config: { ...config, listen: { host, port: 8080 } }, tls },
  })),
  ...['LocalHost', '0:0:0:0:0:0:0:1'].map((host) => ({
    name: `probes on ${host}`,
    says: /config\.probes\.host: .+ is not where kubelet asks/,
    values: { config: { ...config, probes: { host, port: 9902 } }, tls },
  })),
  {
    name: 'callers on loopback at their own port, with nobody in front but a step before',
    says: /config\.listen\.host: 127\.0\.0\.1 is reached by containers of this pod alone/,
    values: {
      config: { ...config, listen: { host: '127.0.0.1', port: 8443 } },
      tls,
      receiver: { container },
      extraInitContainers: [{ name: 'fetch-ca', image: 'tools:1' }],
    },
  },
  {
    name: "probes on loopback in somebody else's pod",
    says: /config\.probes\.host: 127\.0\.0\.1 is not where kubelet asks/,
    values: {
      config: { ...config, probes: { host: '127.0.0.1' } },
      tls,
      sidecar: { enabled: true, podLabels: { app: 'orders' } },
    },
  },
  {
    name: 'no probes',
    says: /config\.probes: kubelet asks there/,
    values: { config: { ...config, probes: null }, tls },
  },
  {
    name: 'TLS that ends here and in front',
    says: /tls\.secretName: config\.listen\.tls_terminated_by says that TLS ends in front/,
    values: { config: { ...config, listen: { tls_terminated_by: 'istio' } }, tls },
  },
  {
    name: 'TLS that ends in front and here',
    says: /tls\.terminatedBy: config\.listen\.tls ends TLS here/,
    values: {
      config: { ...config, listen: { tls: { cert_file: '/a.crt', key_file: '/a.key' } } },
      tls: { terminatedBy: 'istio' },
    },
  },
  {
    name: 'nothing for a monitor to find',
    says: /set metrics\.service\.enabled/,
    values: { config, tls, metrics: { service: { enabled: false }, serviceMonitor: { enabled: true } } },
  },
  { name: 'a misspelt value', values: { config, tls, replicas: 3 }, says: /replicas/ },
  { name: 'a misspelt value further in', values: { config, tls, networkPolicy: { caller: [] } }, says: /caller/ },
  { name: 'a port that is none', values: { config, tls, ports: { proxy: 0 } }, says: /ports\/proxy|ports\.proxy/ },
  { name: 'a digest that is none', values: { config, tls, image: { digest: 'latest' } }, says: /digest/ },
  {
    name: 'a tag in the repository',
    values: { config, tls, image: { repository: 'sallyport:1' } },
    says: /repository/,
  },
  {
    name: 'a path of a probe that is none',
    values: { config, tls, receiver: { probes: { live: 'healthz' } } },
    says: /live/,
  },
];

/** What the proxy depends on, a card for each. */
import type { JSX } from 'preact';
import type { Status } from '../admin/status.js';
import type { Live } from './live.js';
import { Badge, Card, Facts, Quiet, type Tone } from './parts.js';
import { age, count, plural, secondsSince, span, words } from './words.js';

export function Cards({ live }: { readonly live: Live }): JSX.Element | null {
  const { status, inDoubt } = live;
  if (status === null) return null;
  return (
    <div class="cards">
      <Config status={status} />
      {status.issuers.map((issuer) => (
        <Keys key={issuer.name} issuer={issuer} />
      ))}
      <Certificates status={status} />
      <Store status={status} />
      <InDoubt status={status} inDoubt={inDoubt} />
      <Revocations status={status} />
      <Shadow status={status} />
      <Connections status={status} />
    </div>
  );
}

function Config({
  status: { config, version, revision, node, started_at: startedAt, routes, upstream },
}: {
  readonly status: Status;
}): JSX.Element {
  const now = Date.now();
  return (
    <Card title="In force">
      <Facts
        rows={[
          ['Config', <code title={config.sha256}>{config.sha256.slice(0, 12)}</code>],
          ['Loaded', `${span(secondsSince(config.loaded_at, now))} ago`],
          ['File', config.file],
          [
            'Mode',
            config.mode === 'shadow' ? (
              <Badge tone="warn">shadow: nothing is refused for want of a right</Badge>
            ) : (
              'enforce'
            ),
          ],
          ['Routes', count(routes.length)],
          ['Upstream', upstream === null ? 'none' : <code>{upstream.url}</code>],
          [
            'Running',
            `${span(secondsSince(startedAt, now))}, Sallyport ${version} (${revision.slice(0, 8)}), Node ${node}`,
          ],
        ]}
      />
    </Card>
  );
}

function Keys({ issuer }: { readonly issuer: Status['issuers'][number] }): JSX.Element {
  const tone: Tone = issuer.usable ? (issuer.stale ? 'warn' : 'good') : 'bad';
  const state = issuer.usable ? (issuer.stale ? 'stale' : 'usable') : 'no keys';
  return (
    <Card title={`Keys: ${issuer.name}`} tone={tone} state={state}>
      <Facts
        rows={[
          ['Fetched', issuer.age_s === null ? 'never' : `${span(issuer.age_s)} ago`],
          [
            'Next fetch',
            issuer.next_fetch_s === null
              ? 'being fetched, or when the file changes'
              : `in ${span(issuer.next_fetch_s)}`,
          ],
          ...(issuer.serves_for_s === null
            ? []
            : [['Serve for', `${span(issuer.serves_for_s)} without their source`] as const]),
          ...(issuer.last_error === null
            ? []
            : [['Problem', <span class="problem">{issuer.last_error}</span>] as const]),
        ]}
      />
      {issuer.keys.length === 0 ? (
        <Quiet>No key is known.</Quiet>
      ) : (
        <ul class="rows">
          {issuer.keys.map((key) => (
            <li key={key.key_id}>
              <code>{key.key_id}</code>
              <span>{age(key.age_s)}</span>
              {key.accepted ? null : <Badge tone="warn">not accepted</Badge>}
            </li>
          ))}
        </ul>
      )}
    </Card>
  );
}

/** Days from which on a certificate is a matter of today. */
const soon = 14;

function Certificates({ status: { certificates } }: { readonly status: Status }): JSX.Element {
  const least = Math.min(...certificates.map(({ days_left: days }) => days));
  const tone: Tone = certificates.length === 0 ? 'plain' : least < 0 ? 'bad' : least <= soon ? 'warn' : 'good';
  const state = certificates.length === 0 ? 'none in use' : least < 0 ? 'expired' : `${plural(least, 'day')} left`;
  return (
    <Card title="Certificates" tone={tone} state={state}>
      {certificates.length === 0 ? (
        <Quiet>Callers and upstream are spoken to without TLS of Sallyport’s own.</Quiet>
      ) : (
        <ul class="rows">
          {certificates.map((one) => (
            <li key={one.certificate}>
              <span>{words(one.certificate)}</span>
              <span>until {one.valid_to.slice(0, 10)}</span>
              <Badge tone={one.days_left < 0 ? 'bad' : one.days_left <= soon ? 'warn' : 'good'}>
                {one.days_left < 0
                  ? `expired ${plural(-one.days_left, 'day')} ago`
                  : `${plural(one.days_left, 'day')} left`}
              </Badge>
            </li>
          ))}
        </ul>
      )}
    </Card>
  );
}

const roles: Readonly<Record<string, string>> = { master: 'primary', slave: 'replica' };

function Store({ status: { store } }: { readonly status: Status }): JSX.Element {
  if (store === null) {
    return (
      <Card title="Store" tone="plain" state="none">
        <Quiet>No write is reserved, and nothing is revoked through a store.</Quiet>
      </Card>
    );
  }
  const isRedis = store.kind === 'redis';
  return (
    <Card title={isRedis ? 'Redis' : 'Store'} tone={store.up ? 'good' : 'bad'} state={store.up ? 'up' : 'down'}>
      {store.problem === null ? null : <p class="problem">{store.problem}</p>}
      {isRedis ? null : <Quiet>In the memory of this process, for development.</Quiet>}
      <ul class="rows">
        {store.servers.map(({ address, role, replicas }) => (
          <li key={address}>
            <code>{address}</code>
            <Badge tone={role === 'master' ? 'good' : 'bad'}>
              {role === null ? 'not connected' : (roles[role] ?? role)}
            </Badge>
            <span>{replicas === null ? '' : plural(replicas, 'replica')}</span>
          </li>
        ))}
      </ul>
      {isRedis ? <Facts rows={[['Fail-overs seen', count(store.failovers)]]} /> : null}
    </Card>
  );
}

function InDoubt({
  status: { store },
  inDoubt,
}: {
  readonly status: Status;
  readonly inDoubt: Live['inDoubt'];
}): JSX.Element | null {
  if (store === null) return null;
  return (
    <Card
      title="Writes in doubt"
      tone={inDoubt.length === 0 ? 'good' : 'bad'}
      state={inDoubt.length === 0 ? 'none' : count(inDoubt.length)}
    >
      {inDoubt.length === 0 ? (
        <Quiet>Of every write of this process it is known what became of it.</Quiet>
      ) : (
        <>
          <ul class="rows">
            {inDoubt.map(({ record, age_s: seconds }) => (
              <li key={record}>
                <code>{record}</code>
                <span>for {span(seconds)}</span>
              </li>
            ))}
          </ul>
          <p class="none">
            Settle each with <code>sallyport record resolve</code>.
          </p>
        </>
      )}
    </Card>
  );
}

function Revocations({ status: { revocations } }: { readonly status: Status }): JSX.Element | null {
  if (revocations === null) return null;
  const isWell = revocations.loaded && !revocations.stale && revocations.not_in_force === 0 && revocations.lost === 0;
  return (
    <Card title="Revocations" tone={isWell ? 'good' : 'warn'} state={plural(revocations.held, 'revocation')}>
      {revocations.problem === null ? null : <p class="problem">{revocations.problem}</p>}
      <Facts
        rows={[
          ['Read', revocations.loaded ? `${span(revocations.age_s)} ago` : 'not yet'],
          ...(revocations.not_in_force > 0 ? [['Not in force', count(revocations.not_in_force)] as const] : []),
          ...(revocations.lost > 0 ? [['Lost by the store', count(revocations.lost)] as const] : []),
        ]}
      />
      <ul class="rows">
        {revocations.entries.slice(0, 20).map((entry) => (
          <li key={entry.id}>
            <span>{words(entry.kind)}</span>
            <code>{entry.value}</code>
            <span>until {entry.ends_at.slice(0, 16).replace('T', ' ')}</span>
            {entry.lost ? <Badge tone="warn">lost</Badge> : null}
          </li>
        ))}
      </ul>
    </Card>
  );
}

function Shadow({ status: { routes, counts, config } }: { readonly status: Status }): JSX.Element | null {
  const names = routes.filter(({ mode }) => mode === 'shadow').map(({ name }) => name);
  const would = Object.entries(counts.shadow_denials).sort(([, one], [, other]) => other - one);
  if (names.length === 0 && would.length === 0 && config.mode !== 'shadow') return null;
  const total = would.reduce((sum, [, value]) => sum + value, 0);
  return (
    <Card title="Shadow mode" tone="warn" state={`${count(total)} would be refused`}>
      <Facts rows={[['Routes', names.length === 0 ? 'none' : names.join(', ')]]} />
      <ul class="rows">
        {would.slice(0, 10).map(([reason, value]) => (
          <li key={reason}>
            <span>{words(reason)}</span>
            <span class="number">{count(value)}</span>
          </li>
        ))}
      </ul>
      <p class="none">
        <a href="#refusals">The last of them</a>
      </p>
    </Card>
  );
}

function Connections({ status: { connections, listeners, egress } }: { readonly status: Status }): JSX.Element {
  const at = (place: { readonly host: string; readonly port: number } | null): string =>
    place === null ? 'none' : `${place.host}:${place.port}`;
  return (
    <Card title="Connections">
      <Facts
        rows={[
          ['Callers at', <code>{at(listeners.proxy)}</code>],
          [
            'Open',
            `${count(connections.http1.connections)} of HTTP/1, ${count(connections.http2.connections)} of HTTP/2`,
          ],
          [
            'Upstream',
            `${count(connections.upstream.connections)} open, ${connections.upstream.waiting} requests wait`,
          ],
          ...(egress === null
            ? []
            : [
                ['Calling side', egress.targets.map(({ name, requests }) => `${name} ${requests}`).join(', ')] as const,
              ]),
        ]}
      />
    </Card>
  );
}

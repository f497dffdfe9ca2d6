/** Who may do what: routes down, callers across. */
import { useState } from 'preact/hooks';
import type { JSX } from 'preact';
import type { Access } from '../admin/console/access.js';
import { Badge, Quiet } from './parts.js';

type Route = Access['routes'][number];
type Caller = Access['callers'][number];

/** Columns that a screen has room for; a filter brings the others. */
const mostCallers = 40;

export function AccessMatrix({ access }: { readonly access: Access | null }): JSX.Element {
  const [sought, setSought] = useState('');
  if (access === null) return <Quiet>Reading…</Quiet>;
  const words = sought.toLowerCase();
  const matches = (...texts: readonly string[]): boolean => texts.some((text) => text.toLowerCase().includes(words));
  const byCaller = access.callers
    .map((caller, index) => ({ caller, index }))
    .filter(({ caller }) => matches(caller.name));
  const byRoute = access.routes.filter(({ name, paths, methods }) => matches(name, ...paths, ...methods));
  // Who seeks a caller wants its routes, and who seeks a route its callers.
  const callers =
    byCaller.length > 0 && byRoute.length === 0 ? byCaller : access.callers.map((caller, index) => ({ caller, index }));
  const wanted = new Set(byCaller.map(({ index }) => index));
  const routes =
    byRoute.length > 0 && byCaller.length === 0
      ? byRoute
      : access.routes.filter(
          (route) => byRoute.includes(route) || route.grants.some(({ caller }) => wanted.has(caller)),
        );
  const used = new Set(routes.flatMap(({ grants }) => grants.map(({ caller }) => caller)));
  const columns = callers.filter(({ index }) => used.has(index));
  const shown = columns.slice(0, mostCallers);
  return (
    <section class="card wide" aria-labelledby="access-title">
      <header>
        <h2 id="access-title">Who may do what</h2>
        <span class="quiet">
          {routes.length} of {access.routes.length} routes, {shown.length} of {access.callers.length} callers
        </span>
      </header>
      <div class="filters">
        <label class="field grow">
          Find
          <input
            type="search"
            placeholder="route, path, method or caller"
            value={sought}
            onInput={({ currentTarget }) => setSought(currentTarget.value)}
          />
        </label>
      </div>
      {routes.length === 0 ? (
        <Quiet>No route and no caller has that in its name.</Quiet>
      ) : (
        <div class="scroll" tabIndex={0} role="region" aria-labelledby="access-title">
          <table class="matrix">
            <thead>
              <tr>
                <th scope="col">Route</th>
                {shown.map(({ caller, index }) => (
                  <th scope="col" key={index}>
                    <CallerName caller={caller} />
                  </th>
                ))}
              </tr>
            </thead>
            <tbody>
              {routes.map((route) => (
                <tr key={route.name}>
                  <th scope="row">
                    <RouteName route={route} />
                  </th>
                  {shown.map(({ caller, index }) => (
                    <Cell key={index} route={route} caller={caller} index={index} />
                  ))}
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
      <p class="none">
        <span aria-hidden="true">✓</span> may, with the permissions below it, all of them; rows with “or” have several
        ways. Empty: may not. A caller is known by its token’s subject.
      </p>
    </section>
  );
}

function CallerName({ caller: { name, kind } }: { readonly caller: Caller }): JSX.Element {
  return <span class={`caller ${kind}`}>{name}</span>;
}

function RouteName({ route }: { readonly route: Route }): JSX.Element {
  const { name, methods, paths, mode, reserves, issuers, asks_certificate: asksCertificate } = route;
  return (
    <>
      <span class="route">{name}</span>
      <code>
        {methods.join(' ')} {paths.join(', ')}
      </code>
      <span class="tags">
        {mode === 'shadow' ? <Badge tone="warn">shadow</Badge> : null}
        {reserves ? <span class="tag">reserves</span> : null}
        {asksCertificate ? <span class="tag">certificate</span> : null}
        {issuers === null ? null : <span class="tag">tokens of {issuers.join(', ')}</span>}
      </span>
    </>
  );
}

function Cell({
  route,
  caller,
  index,
}: {
  readonly route: Route;
  readonly caller: Caller;
  readonly index: number;
}): JSX.Element {
  const ways = route.grants.filter((grant) => grant.caller === index);
  if (ways.length === 0) {
    return (
      <td class="no">
        <span class="hidden">may not</span>
      </td>
    );
  }
  return (
    <td class="yes" data-label={caller.name}>
      <span aria-hidden="true">✓</span>
      <span class="hidden">may</span>
      {ways.map(({ needs }, way) => (
        <span class="needs" key={way}>
          {way > 0 ? <em>or </em> : null}
          {needs.length === 0 ? (ways.length > 1 ? 'without permission' : '') : needs.join(' ')}
        </span>
      ))}
    </td>
  );
}

/** What of the policy the cases show. */
import type { JSX } from 'preact';
import { Badge, Quiet } from '../console/parts.js';
import { gapWords, type PolicyPoint } from '../policy-test/suite/coverage.js';
import type { Run } from './use-engine.js';

export function Coverage({ run: { isDecided, cases, coverage } }: { readonly run: Run }): JSX.Element {
  if (!isDecided) return <Quiet>The config has errors: nothing is decided by it.</Quiet>;
  const { percent, points } = coverage;
  const covered = points.filter((point) => point.covered).length;
  const routes = [...new Set(points.map(({ route }) => route))];
  return (
    <section class="card wide" aria-labelledby="coverage-title">
      <header>
        <h2 id="coverage-title">What the cases show of the policy</h2>
        <span>
          {covered} of {points.length} ({percent} %)
        </span>
      </header>
      {cases.length === 0 ? <Quiet>No request yet.</Quiet> : null}
      <table class="rulings">
        <thead>
          <tr>
            <th scope="col">Route</th>
            <th scope="col">Shown</th>
            <th scope="col">Not shown</th>
          </tr>
        </thead>
        <tbody>
          {routes.map((route) => (
            <RouteRow key={route} points={points.filter((point) => point.route === route)} route={route} />
          ))}
        </tbody>
      </table>
    </section>
  );
}

function RouteRow({ route, points }: { readonly route: string; readonly points: readonly PolicyPoint[] }): JSX.Element {
  const gaps = points.filter(({ covered }) => !covered);
  return (
    <tr>
      <td data-label="Route">{route}</td>
      <td data-label="Shown">
        <Badge tone={gaps.length === 0 ? 'good' : 'warn'}>
          {points.length - gaps.length} of {points.length}
        </Badge>
      </td>
      <td data-label="Not shown">
        {gaps.map((gap) => (
          <p key={`${gap.kind} ${gap.name}`}>{gapWords(gap).replace(`route ${route}: `, '')}</p>
        ))}
      </td>
    </tr>
  );
}

/** The page: a config, requests with their claims, and what comes of them. */
import { useEffect, useState } from 'preact/hooks';
import type { JSX } from 'preact';
import { AccessMatrix } from '../console/access.js';
import { Badge, Quiet } from '../console/parts.js';
import { Navigation, useView } from '../console/views.js';
import { plural } from '../console/words.js';
import { About } from './about.js';
import { Coverage } from './coverage.js';
import { Difference } from './difference.js';
import { configSchema, testsSchema } from './schemas.js';
import { TextCard } from './text-card.js';
import { draftTests, matrixOf, testsName } from './engine.js';
import type { Files } from './files.js';
import { Results } from './results.js';
import { useConfig, useRun, type Run } from './use-engine.js';
import { PlaceholderFields } from './placeholders.js';

const views = [
  ['results', 'Results'],
  ['access', 'Access'],
  ['coverage', 'Coverage'],
  ['diff', 'Diff'],
  ['about', 'About'],
] as const;

export function App({ files }: { readonly files: Files }): JSX.Element {
  const [config, setConfig] = useState(files.config);
  const [tests, setTests] = useState(files.tests ?? { name: testsName, text: '' });
  const [before, setBefore] = useState(files.config.text);
  const [values, setValues] = useState<Readonly<Record<string, string>>>({});
  const [goTo, setGoTo] = useState<{ readonly line: number } | null>(null);
  const checked = useConfig(config.text, values);
  const run = useRun(checked.config, tests.text);
  const view = useView(views);
  const draft = (): void => {
    if (checked.config === null) return;
    draftTests(checked.config, config.name, Date.now()).then((text) => setTests({ ...tests, text }), reportError);
  };
  useEffect(() => {
    if (files.tests === null) draft();
  }, []);
  useLeaveWarning(config.text !== files.config.text || tests.text !== (files.tests?.text ?? ''));
  return (
    <>
      <a class="skip" href="#main">
        Skip to the results
      </a>
      <header class="top">
        <h1>Sallyport playground</h1>
        <Summary problems={checked.problems.length} isSound={checked.config !== null} run={run} />
      </header>
      <div class="texts">
        <TextCard
          title="Config"
          file={config}
          problems={checked.problems}
          notes={checked.notes}
          schema={configSchema()}
          onChange={setConfig}
        >
          <PlaceholderFields text={config.text} values={values} onChange={setValues} />
        </TextCard>
        <TextCard
          title="Requests and claims"
          file={tests}
          problems={run.problems}
          schema={testsSchema()}
          goTo={goTo}
          onChange={setTests}
          onDraft={checked.config === null ? null : draft}
        />
      </div>
      <Navigation views={views} current={view} />
      <main id="main" tabIndex={-1}>
        {view === 'results' ? <Results run={run} onShow={(line) => setGoTo({ line })} /> : null}
        {view === 'access' ? <AccessView config={checked.config} /> : null}
        {view === 'coverage' ? <Coverage run={run} /> : null}
        {view === 'diff' ? (
          <Difference before={before} after={checked} text={config.text} values={values} onBefore={setBefore} />
        ) : null}
        {view === 'about' ? <About /> : null}
      </main>
    </>
  );
}

function AccessView({ config }: { readonly config: ReturnType<typeof useConfig>['config'] }): JSX.Element {
  return config === null ? (
    <Quiet>The config has errors: nobody may do anything.</Quiet>
  ) : (
    <AccessMatrix access={matrixOf(config)} />
  );
}

/** What is edited is kept nowhere: the browser asks before it is lost. */
function useLeaveWarning(isEdited: boolean): void {
  useEffect(() => {
    if (!isEdited) return;
    const ask = (event: BeforeUnloadEvent): void => event.preventDefault();
    window.addEventListener('beforeunload', ask);
    return () => window.removeEventListener('beforeunload', ask);
  }, [isEdited]);
}

function Summary({
  problems,
  isSound,
  run: { cases, problems: wrong, coverage },
}: {
  readonly problems: number;
  readonly isSound: boolean;
  readonly run: Run;
}): JSX.Element {
  const failed = cases.filter(({ ok }) => !ok).length;
  return (
    <p class="summary" role="status">
      {isSound ? (
        <Badge tone={problems === 0 ? 'good' : 'warn'}>
          {problems === 0 ? 'config holds' : `config holds, ${plural(problems, 'warning')}`}
        </Badge>
      ) : (
        <Badge tone="bad">config: {plural(problems, 'problem')}</Badge>
      )}
      {wrong.length > 0 ? <Badge tone="bad">requests: {plural(wrong.length, 'problem')}</Badge> : null}
      {cases.length > 0 ? (
        <Badge tone={failed === 0 ? 'good' : 'bad'}>
          {plural(cases.length, 'case')}, {failed} failed
        </Badge>
      ) : null}
      {cases.length > 0 ? <span>coverage {coverage.percent} %</span> : null}
    </p>
  );
}

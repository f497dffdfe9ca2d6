import t from 'tap';
import { validateConfig, type ConfigValidation } from '../../../src/config/load/validate-config.js';
import { refuse } from '../../../src/lib/result.js';
import { configText } from '../inspection.js';

function inspect(text: string, endMarkerFor: string | null = null): ConfigValidation {
  return validateConfig(text, { file: 'c.yaml', folder: '/', env: {}, endMarkerFor, readFile: () => refuse('none') });
}

const plain = configText();
const asking = `reload: { end_marker: required }\n${plain}`;

t.test('the last line says that a config is whole, where that is asked for', (t) => {
  const rows: readonly { text: string; by: string | null; asks: string | null }[] = [
    { text: plain, by: null, asks: null },
    { text: `${plain}...\n`, by: null, asks: null },
    { text: `${plain}...`, by: '--end-marker', asks: null },
    { text: `${plain}...\r\n\n  \n`, by: '--end-marker', asks: null },
    { text: `${asking}...\n`, by: null, asks: null },
    { text: plain, by: '--end-marker', asks: '--end-marker' },
    { text: asking, by: null, asks: 'reload.end_marker' },
    { text: asking, by: 'the config in force', asks: 'the config in force' },
    { text: `${asking}# ...\n`, by: null, asks: 'reload.end_marker' },
    { text: `${asking} ...\n`, by: '--end-marker', asks: '--end-marker' },
    { text: `${asking}...\n# more\n`, by: null, asks: 'reload.end_marker' },
    { text: `${asking}..\n`, by: '--end-marker', asks: '--end-marker' },
    { text: asking.slice(0, -20), by: '--end-marker', asks: '--end-marker' },
    { text: '', by: '--end-marker', asks: '--end-marker' },
  ];
  for (const { text, by, asks } of rows) {
    const { config, problems } = inspect(text, by);
    const found = problems.filter(({ message }) => message.includes('may not be whole'));
    t.same(
      found.map(({ message, severity }) => ({
        severity,
        by: message.slice(message.indexOf('; ') + 2, -' asks for it'.length),
      })),
      asks === null ? [] : [{ severity: 'error', by: asks }],
      JSON.stringify(text.slice(-12)),
    );
    t.equal(config === null, asks !== null);
  }
  t.match(inspect(asking).problems, [{ line: 5, column: 1, allowed: '... as the last line' }], 'at the last line');
  t.end();
});

t.test('a text in the config cannot look like its end', (t) => {
  const text = `${plain.replace(/^routes: .*$/m, '')}log: |\n  level\n  ...\n`;
  t.match(
    inspect(text, '--end-marker')
      .problems.map(({ message }) => message)
      .join(),
    'may not be whole',
  );
  t.end();
});

t.test('a config that asks for the marker too late to notice a cut is told so, in a note', (t) => {
  const late = `${plain}reload: { end_marker: required }\n...\n`;
  t.match(inspect(late).notes, [{ line: 5, message: /^reload\.end_marker is required, and does not stand first: / }]);
  t.not(inspect(late).config, null);
  t.same(inspect(`${asking}...\n`).notes, []);
  t.same(inspect(`${plain}reload: { end_marker: optional }\n`).notes, []);
  t.end();
});

t.test('unless it says otherwise, an edit has to stay as it is for two seconds, and needs no marker', (t) => {
  t.same(inspect(plain).config?.reload, { endMarker: false, leastAgeMs: 2_000 });
  t.end();
});

/** The texts that the page begins with, and how they come in and go out. Nothing is kept anywhere. */
import { configName, testsName } from './engine.js';
import { exampleConfig, exampleTests } from './example.js';

export interface NamedText {
  readonly name: string;
  readonly text: string;
}

/** The two texts. */
export interface Files<Config = NamedText> {
  readonly config: Config;
  /** `null` where none was given with the config: cases are written for it then. */
  readonly tests: NamedText | null;
}

/** What `sallyport playground` put into the page, else the example. */
export function filesGiven(): Files {
  const given = JSON.parse(document.getElementById('files')?.textContent ?? '{}') as Partial<Files<NamedText | null>>;
  const { config = null, tests = null } = given;
  return config === null
    ? {
        config: { name: configName, text: exampleConfig },
        tests: tests ?? { name: testsName, text: exampleTests },
      }
    : { config, tests };
}

/** By then a browser has begun to write it. */
const keptForMs = 10_000;

/** Hands a text to the browser's downloads. */
export function save({ name, text }: NamedText): void {
  const link = document.createElement('a');
  link.href = URL.createObjectURL(new Blob([text], { type: 'application/yaml' }));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), keptForMs);
}

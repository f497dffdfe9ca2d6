/** What the doctor says of proxies that ask for decisions. */
import type { CompiledConfig } from '../../../../config/types.js';
import type { Form } from '../../../../decision/decide/forms.js';
import { ok, problem, warning, type Finding } from '../finding.js';
import { askFront, type FrontAnswers } from './ask-front.js';
import { frontSettings, type FrontSetting } from './settings.js';

const page = 'docs/decide.md#settings-that-open-a-hole';

/**
 * Names for each form the settings of its proxy that open a hole. Those that show from outside are looked at where the
 * front is named.
 *
 * @param front origin at which clients reach the proxy; `null` where it is not asked.
 */
export async function checkFronts(config: CompiledConfig, front: string | null): Promise<readonly Finding[]> {
  const forms = new Set(config.decide.map(({ form }) => form));
  if (forms.size === 0) {
    return front === null ? [] : [problem('front', 'the config has no decide listener', 'leave out --front')];
  }
  const answers = front === null ? null : await askFront(front, config);
  return [...(answers?.findings ?? []), ...[...forms].flatMap((form) => findingsOf(form, answers))];
}

function findingsOf(form: Form, answers: FrontAnswers | null): readonly Finding[] {
  return frontSettings[form].flatMap((setting) => {
    if (setting.shownBy !== null && answers?.shown.has(setting.shownBy) === true) {
      return [ok(`front ${form}`, `not ${setting.setting}, as far as it was asked`)];
    }
    return [unseen(form, setting)];
  });
}

function unseen(form: Form, { setting, danger, fix, shownBy }: FrontSetting): Finding {
  const whether = shownBy === null ? 'cannot be seen from here' : 'is seen with --front';
  return warning(`front ${form}`, `whether it has ${setting} ${whether}: ${danger}`, `${fix} (${page})`);
}

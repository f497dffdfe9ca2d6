import t from 'tap';
import { holdPresets } from './hold-presets.js';
import { largePresets } from './presets.js';

t.setTimeout(7_200_000);

await holdPresets(t, largePresets, { timeout: 3_600_000 });

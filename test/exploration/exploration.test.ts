import t from 'tap';
import { holdPresets } from './hold-presets.js';
import { smallPresets } from './presets.js';

await holdPresets(t, smallPresets);

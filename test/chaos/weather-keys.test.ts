import t from 'tap';
import { keysWeather } from './weather-keys.js';
import { startScene } from './weather-scene.js';
import { weather } from './weather.js';

const scene = await startScene(t);

for (const row of keysWeather) {
  t.test(`the source of the keys ${row.name}`, async (t) => {
    await weather(t, scene, row);
  });
}

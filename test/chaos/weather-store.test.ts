import t from 'tap';
import { startScene } from './weather-scene.js';
import { storeWeather } from './weather-store.js';
import { weather } from './weather.js';

const scene = await startScene(t);

for (const row of storeWeather) {
  t.test(`Redis ${row.name}`, async (t) => {
    await weather(t, scene, row);
  });
}

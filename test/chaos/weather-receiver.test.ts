import t from 'tap';
import { receiverWeather } from './weather-receiver.js';
import { startScene } from './weather-scene.js';
import { weather } from './weather.js';

const scene = await startScene(t);

for (const row of receiverWeather) {
  t.test(`the receiver ${row.name}`, async (t) => {
    await weather(t, scene, row);
  });
}

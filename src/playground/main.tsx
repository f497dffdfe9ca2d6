import './without-eval.js';
import { render } from 'preact';
import { App } from './app.js';
import * as engine from './engine.js';
import { filesGiven } from './files.js';

// For who would ask more than the page shows, in the browser's own console.
Object.assign(globalThis, { sallyport: engine });

const root = document.getElementById('root');
if (root !== null) render(<App files={filesGiven()} />, root);

/** A page in a real browser, driven over the DevTools protocol as a person would: seen, clicked and typed into. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { WebSocket } from 'ws';
import { browserFlags, findBrowser } from './browser.js';
import type { Scope } from './scope.js';
import { tempDir } from './temp-dir.js';
import { until } from './until.js';

export interface OpenPage {
  /** Runs an expression in the page and returns its value, a promise's too. */
  readonly evaluate: (expression: string) => Promise<unknown>;
  /** Waits until an expression holds there. */
  readonly sees: (what: string, expression: string) => Promise<void>;
  /** Waits until the text that a person would read has this in it. */
  readonly reads: (text: string) => Promise<void>;
  /** Clicks in the middle of the first element that a selector finds. */
  readonly click: (selector: string) => Promise<void>;
  readonly type: (text: string) => Promise<void>;
  /** One key by its name, `Tab` or `Enter`; with the control key held where that is said. */
  readonly press: (key: string, withControl?: boolean) => Promise<void>;
  readonly resize: (width: number, height: number, isPhone?: boolean) => Promise<void>;
  readonly useScheme: (scheme: 'light' | 'dark') => Promise<void>;
  readonly goTo: (url: string) => Promise<void>;
  /** Writes what is seen to a file, in PNG. */
  readonly screenshot: (file: string) => Promise<void>;
  /** What the page wrote to its console, warnings and errors of the browser too, as lines. */
  readonly messages: readonly string[];
  /** URLs that were asked for. */
  readonly requests: readonly string[];
}

/** Something that tools may look at. */
interface Target {
  readonly type: string;
  readonly webSocketDebuggerUrl: string;
}

interface Message {
  readonly id?: number;
  readonly method?: string;
  readonly params?: Readonly<Record<string, unknown>>;
  readonly result?: Readonly<Record<string, unknown>>;
  readonly error?: { readonly message: string };
}

/** Key codes, without which Chromium does nothing of its own on a key. */
const keyCodes: Readonly<Record<string, number>> = {
  Tab: 9,
  Enter: 13,
  Escape: 27,
  ' ': 32,
  End: 35,
  Home: 36,
  ArrowRight: 39,
  Backspace: 8,
};

/** As the protocol counts it among the keys that are held. */
const controlKey = 2;

/** Opens a page in a browser of its own. */
export async function openPage(t: Scope, url: string): Promise<OpenPage> {
  const profile = tempDir(t);
  const child = spawn(findBrowser(), [...browserFlags(profile), 'about:blank'], { stdio: 'ignore', detached: true });
  t.teardown(async () => {
    // What was started is a script, which does not hand the signal on. Its processes write into the profile to the end.
    const isGone = (): boolean => {
      try {
        process.kill(-(child.pid ?? 0), 'SIGKILL');
        return false;
      } catch {
        return true;
      }
    };
    await until('the end of the browser', isGone, 30_000);
  });
  const portFile = join(profile, 'DevToolsActivePort');
  let targets: readonly Target[] = [];
  await until(
    'the page of the browser',
    async () => {
      if (!existsSync(portFile)) return false;
      const [port = ''] = readFileSync(portFile, 'utf8').split('\n');
      targets = await fetch(`http://127.0.0.1:${port}/json/list`).then(
        async (answer) => (await answer.json()) as readonly Target[],
        () => [],
      );
      return targets.some(({ type }) => type === 'page');
    },
    60_000,
  );
  const address = targets.find(({ type }) => type === 'page')?.webSocketDebuggerUrl ?? '';
  const socket = new WebSocket(address);
  await once(socket, 'open');
  t.teardown(() => socket.close());
  const page = drive(socket);
  for (const domain of ['Page', 'Runtime', 'Log', 'Network']) await page.send(`${domain}.enable`);
  await page.resize(1280, 900);
  await page.goTo(url);
  return page;
}

function drive(socket: WebSocket): OpenPage & { readonly send: (method: string, params?: object) => Promise<Message> } {
  const messages: string[] = [];
  const requests: string[] = [];
  const waiting = new Map<number, (message: Message) => void>();
  let sent = 0;
  let loads = 0;
  socket.on('message', (data: Buffer) => {
    const message = JSON.parse(data.toString()) as Message;
    if (message.id !== undefined) waiting.get(message.id)?.(message);
    note(message);
  });

  function note({ method, params }: Message): void {
    if (method === 'Runtime.consoleAPICalled' || method === 'Runtime.exceptionThrown' || method === 'Log.entryAdded') {
      messages.push(JSON.stringify(params));
    }
    if (method === 'Page.loadEventFired') loads += 1;
    if (method !== 'Network.requestWillBeSent') return;
    const { request } = params as { readonly request: { readonly url: string } };
    requests.push(request.url);
  }

  async function send(method: string, params: object = {}): Promise<Message> {
    const id = (sent += 1);
    const answer = new Promise<Message>((resolve) => waiting.set(id, resolve));
    socket.send(JSON.stringify({ id, method, params }));
    const message = await answer;
    waiting.delete(id);
    if (message.error !== undefined) throw new Error(`${method}: ${message.error.message}`);
    return message;
  }

  async function evaluate(expression: string): Promise<unknown> {
    const { result } = await send('Runtime.evaluate', { expression, awaitPromise: true, returnByValue: true });
    const { result: value, exceptionDetails: fault } = result as {
      readonly result: { readonly value?: unknown };
      readonly exceptionDetails?: object;
    };
    if (fault !== undefined) throw new Error(`${expression}: ${JSON.stringify(fault)}`);
    return value.value;
  }

  async function sees(what: string, expression: string): Promise<void> {
    const deadline = Date.now() + 30_000;
    while ((await evaluate(expression)) !== true) {
      if (Date.now() > deadline) {
        throw new Error(`not seen: ${what}; the page says ${String(await evaluate('document.body.innerText'))}`);
      }
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
  }

  return {
    send,
    evaluate,
    sees,
    messages,
    requests,
    reads: (text) => sees(text, `document.body.innerText.includes(${JSON.stringify(text)})`),
    click: async (selector) => {
      const found = `document.querySelector(${JSON.stringify(selector)})`;
      await sees(selector, `${found} !== null`);
      const place = (await evaluate(`(() => {
        const element = ${found};
        element.scrollIntoView({ block: 'center', behavior: 'instant' });
        const { x, y, width, height } = element.getBoundingClientRect();
        return { x: x + width / 2, y: y + height / 2 };
      })()`)) as object;
      const button = { ...place, button: 'left', clickCount: 1 };
      await send('Input.dispatchMouseEvent', { ...button, type: 'mousePressed' });
      await send('Input.dispatchMouseEvent', { ...button, type: 'mouseReleased' });
    },
    type: async (text) => {
      await send('Input.insertText', { text });
    },
    press: async (key, withControl = false) => {
      const windowsVirtualKeyCode = keyCodes[key] ?? 0;
      const text = key === 'Enter' ? { text: '\r' } : key === ' ' ? { text: ' ' } : {};
      const event = { key, code: key, windowsVirtualKeyCode, modifiers: withControl ? controlKey : 0 };
      await send('Input.dispatchKeyEvent', { type: 'keyDown', ...event, ...text });
      await send('Input.dispatchKeyEvent', { type: 'keyUp', ...event });
    },
    resize: async (width, height, isPhone = false) => {
      const deviceScaleFactor = isPhone ? 2 : 1;
      await send('Emulation.setDeviceMetricsOverride', { width, height, deviceScaleFactor, mobile: isPhone });
    },
    useScheme: async (scheme) => {
      await send('Emulation.setEmulatedMedia', { features: [{ name: 'prefers-color-scheme', value: scheme }] });
    },
    goTo: async (url) => {
      const before = loads;
      await send('Page.navigate', { url });
      // To another part of the same page nothing is loaded.
      if (!url.includes('#') || loads === 0) await until(`load of ${url}`, () => loads > before, 60_000);
    },
    screenshot: async (file) => {
      const { result } = await send('Page.captureScreenshot', { format: 'png' });
      writeFileSync(file, Buffer.from(String(result?.['data']), 'base64'));
    },
  };
}

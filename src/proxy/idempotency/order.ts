import type { Readable } from 'node:stream';
import { denial } from '../../decision/denial.js';
import type { UpstreamOperation } from '../upstream/pool/pool.js';
import type { AttemptDeps, ReservedWrite } from './attempt.js';
import { ReservedRun, type WriteClient } from './reserved-write.js';
import { readWhole, type BufferBudget } from './body-buffer.js';

/** A request that reserves before it is forwarded. */
export interface ReservedOrder extends Omit<ReservedWrite, 'body'> {
  /** `null` where the request has none. It tells by itself when it breaks. */
  readonly body: Readable | null;
  readonly client: WriteClient;
  /** Called once, when nothing of it is left here: it may be long after the caller left. */
  readonly onOver: () => void;
}

export interface OrderDeps extends AttemptDeps {
  readonly budget: BufferBudget;
}

/** One reserved request: its body is read whole, and only then something is reserved. */
export class Order implements UpstreamOperation {
  private readonly deps: OrderDeps;
  private readonly order: ReservedOrder;
  private readonly onOver: () => void;
  private run: ReservedRun | null = null;
  private giveBody: () => void = () => undefined;
  private isOver = false;

  constructor(deps: OrderDeps, order: ReservedOrder, onOver: () => void) {
    this.deps = deps;
    this.order = order;
    this.onOver = onOver;
  }

  start(): void {
    const { body, client } = this.order;
    if (body === null) {
      this.begin(Buffer.alloc(0));
      return;
    }
    this.giveBody = readWhole(body, this.deps.budget.open(this.order.preparation.scope.principal), {
      expectedBytes: this.order.admission.fields.contentLength,
      onWhole: (bytes) => {
        this.begin(bytes);
      },
      onOverload: () => {
        client.refuse(denial('overloaded'));
        this.end();
      },
    });
  }

  resume(): void {
    this.run?.resume();
  }

  /** The client is gone: what was dispatched goes on. */
  cancel(): void {
    if (this.run === null) this.end();
    else this.run.callerGone();
  }

  breakOff(): void {
    if (this.run !== null) {
      this.run.breakOff();
      return;
    }
    this.order.client.refuse(denial('shutting_down'));
    this.end();
  }

  private begin(body: Buffer): void {
    if (this.isOver) return;
    const { client, ...write } = this.order;
    this.run = new ReservedRun(this.deps, { ...write, body }, client, () => {
      this.end();
    });
    this.run.start();
  }

  private end(): void {
    if (this.isOver) return;
    this.isOver = true;
    this.giveBody();
    this.onOver();
    this.order.onOver();
  }
}

// What the page reads: the contract of `explain --json`, and what the program adds to it for the page.

export type {
  Connection,
  End,
  Exchange,
  Gap,
  Omitted,
  Pair,
  Setup,
  Span,
} from './contract/connections';
export type { Finding, Fix, Frames, Model, SideName as Side } from './contract/findings';
export type { Band, Report, Server } from './contract/report';

import type { Fix } from './contract/findings';

export interface Cause {
  id: string;
  class: 'I' | 'A' | 'T' | 'U';
  owner: 'application' | 'tcp' | 'path' | 'none';
  group: string;
  span: boolean;
  title: string;
  what: string;
  page: string;
}
export interface TrackRow {
  connection: number;
  chunk: number;
  at: number;
  kept: number;
  total: number;
}
export interface Page {
  frames_before: number[];
  /** Of all connections, listed or not. */
  exchanges: number;
  causes: Cause[];
  tracks: TrackRow[];
  served: { name: string } | null;
  /** Fixes of findings of connections, by the id of the finding (`2.f1`); crates/report/src/html/fixes.rs. */
  fixes: Record<string, Fix[]>;
  /** Of each finding of the capture, of each of its fixes: the rows of `how` without figures of a connection. */
  general: number[][][];
}

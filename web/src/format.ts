// Numbers for people, in the same words as the program's text.

/** A length of time with three significant digits: `41.5 ms`. */
export function duration(ns: number): string {
  const abs = Math.abs(ns);
  const sign = ns < 0 ? '-' : '';
  if (abs < 1000) return `${sign}${Math.round(abs)} ns`;
  const [unit, per] = abs < 999_500 ? ['µs', 1e3] : abs < 999_500_000 ? ['ms', 1e6] : ['s', 1e9];
  const value = abs / per;
  return `${sign}${value.toFixed(value < 9.995 ? 2 : value < 99.95 ? 1 : 0)} ${unit}`;
}

/** A moment since the start of the capture, in seconds with microseconds. */
export function moment(ns: number): string {
  return `${(ns / 1e9).toFixed(6)} s`;
}

/** `41 %`. */
export function percent(share: number): string {
  const p = share * 100;
  if (!(p > 0)) return '0 %';
  if (p < 0.1) return '<0.1 %';
  return `${p.toFixed(p < 0.95 ? 1 : 0)} %`;
}

/** `2.31 MiB`. */
export function bytes(n: number): string {
  if (n < 1024) return `${n} B`;
  const units = ['KiB', 'MiB', 'GiB', 'TiB'];
  let value = n / 1024;
  let unit = 0;
  while (value >= 1023.95 && unit + 1 < units.length) {
    value /= 1024;
    unit++;
  }
  return `${value.toFixed(value < 9.995 ? 2 : value < 99.95 ? 1 : 0)} ${units[unit]}`;
}

/** `12 Mbit/s`. */
export function bitRate(bps: number): string {
  const [value, unit] =
    bps >= 1e9
      ? [bps / 1e9, 'Gbit/s']
      : bps >= 1e6
        ? [bps / 1e6, 'Mbit/s']
        : bps >= 1e3
          ? [bps / 1e3, 'kbit/s']
          : [bps, 'bit/s'];
  return `${value.toFixed(value < 9.995 ? 2 : 0)} ${unit}`;
}

/** `1 connection`, `34 exchanges`. */
export function count(n: number, what: string): string {
  return `${n} ${what}${n === 1 ? '' : 's'}`;
}

/** The unit once, where it is the same: `40.0-44.5 ms`. */
export function range(a: number, b: number): string {
  const [x, y] = [duration(a), duration(b)];
  if (x === y) return x;
  const [n, unit] = x.split(' ');
  return unit === y.split(' ')[1] ? `${n}-${y}` : `${x} to ${y}`;
}

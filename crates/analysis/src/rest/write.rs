//! What a type of several values looks like at rest: `at_rest!` beside it, with each of its fields or
//! variants. One that is forgotten does not compile.

/// ```text
/// at_rest! { Half { flow, counts, stamp as Near } }              // a field that has another form than its type
/// at_rest! { Budget(times) }
/// at_rest! { enum Closed { Fin, Rst, Open } }
/// at_rest! { enum Repair { 0 => Fast, 1 => TooBig { mtu }, 2 => Doubtful(why) } }
/// ```
macro_rules! at_rest {
    (enum $name:ident { $first:ident $(, $other:ident)* $(,)? }) => {
        impl $crate::rest::Rest for $name {
            fn put(&self, to: &mut $crate::rest::Packer) {
                let number = match self {
                    $name::$first => $name::$first as u8,
                    $($name::$other => $name::$other as u8,)*
                };
                $crate::rest::Rest::put(&number, to);
            }

            fn get(from: &mut $crate::rest::Unpacker<'_>) -> $name {
                let number = <u8 as $crate::rest::Rest>::get(from);
                $(if number == $name::$other as u8 {
                    return $name::$other;
                })*
                $name::$first
            }
        }
    };
    (enum $name:ident {
        0 => $first:ident $(($value:ident))? $({ $($field:ident),* })?
        $(, $n:literal => $other:ident $(($a:ident))? $({ $($b:ident),* })?)* $(,)?
    }) => {
        impl $crate::rest::Rest for $name {
            fn put(&self, to: &mut $crate::rest::Packer) {
                match self {
                    $name::$first $(($value))? $({ $($field),* })? => {
                        <u8 as $crate::rest::Rest>::put(&0, to);
                        $($crate::rest::Rest::put($value, to);)?
                        $($($crate::rest::Rest::put($field, to);)*)?
                    }
                    $($name::$other $(($a))? $({ $($b),* })? => {
                        <u8 as $crate::rest::Rest>::put(&$n, to);
                        $($crate::rest::Rest::put($a, to);)?
                        $($($crate::rest::Rest::put($b, to);)*)?
                    })*
                }
            }

            fn get(from: &mut $crate::rest::Unpacker<'_>) -> $name {
                match <u8 as $crate::rest::Rest>::get(from) {
                    $($n => $name::$other
                        $(({
                            let $a = $crate::rest::Rest::get(from);
                            $a
                        }))?
                        $({ $($b: $crate::rest::Rest::get(from)),* })?,)*
                    _ => $name::$first
                        $(({
                            let $value = $crate::rest::Rest::get(from);
                            $value
                        }))?
                        $({ $($field: $crate::rest::Rest::get(from)),* })?,
                }
            }
        }
    };
    ($name:ident ($field:ident)) => {
        impl $crate::rest::Rest for $name {
            fn put(&self, to: &mut $crate::rest::Packer) {
                let $name($field) = self;
                $crate::rest::Rest::put($field, to);
            }

            fn get(from: &mut $crate::rest::Unpacker<'_>) -> $name {
                $name($crate::rest::Rest::get(from))
            }
        }
    };
    ($name:ident { $($field:ident $(as $form:ident)?),* $(,)? }) => {
        impl $crate::rest::Rest for $name {
            fn put(&self, to: &mut $crate::rest::Packer) {
                let $name { $($field),* } = self;
                $($crate::rest::at_rest!(@put $field to $($form)?);)*
            }

            fn get(from: &mut $crate::rest::Unpacker<'_>) -> $name {
                $name { $($field: $crate::rest::at_rest!(@get from $($form)?)),* }
            }
        }
    };
    (@put $field:ident $to:ident) => { $crate::rest::Rest::put($field, $to) };
    (@put $field:ident $to:ident $form:ident) => { <$form as $crate::rest::Form<_>>::write($field, $to) };
    (@get $from:ident) => { $crate::rest::Rest::get($from) };
    (@get $from:ident $form:ident) => { <$form as $crate::rest::Form<_>>::read($from) };
}

pub(crate) use at_rest;

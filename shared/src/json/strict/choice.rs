//! Enums and their variants.

use std::fmt;

use serde::de::{
    DeserializeSeed, Deserializer, EnumAccess, Error, IgnoredAny, MapAccess, Unexpected, VariantAccess, Visitor,
};

use super::Strict;

/// An enum: one of its variants as a text, or an object with one field, which is named like the variant.
pub(super) struct Choice<V> {
    pub(super) variants: &'static [&'static str],
    pub(super) visitor: V,
}

/// The variants as errors list them.
struct Names(&'static [&'static str]);

impl fmt::Display for Names {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (n, name) in self.0.iter().enumerate() {
            write!(f, "{}`{name}`", if n > 0 { ", " } else { "" })?;
        }
        Ok(())
    }
}

impl<'de, V: Visitor<'de>> Visitor<'de> for Choice<V> {
    type Value = V::Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "one of {}", Names(self.variants))
    }

    fn visit_str<E: Error>(self, name: &str) -> Result<V::Value, E> {
        self.visitor.visit_enum(Named { name, variants: self.variants, error: std::marker::PhantomData })
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<V::Value, A::Error> {
        let names = Names(self.variants);
        let value = self.visitor.visit_enum(Field { map: &mut map, variants: self.variants })?;
        // Nothing may stand beside the one field.
        if map.next_key::<IgnoredAny>()?.is_some() {
            return Err(A::Error::custom(format_args!("has several fields, exactly one of {names} is allowed")));
        }
        Ok(value)
    }
}

/// A variant that is written as a text: it has no value.
struct Named<'a, E> {
    name: &'a str,
    variants: &'static [&'static str],
    error: std::marker::PhantomData<E>,
}

impl<'de, E: Error> EnumAccess<'de> for Named<'_, E> {
    type Error = E;
    type Variant = Self;

    fn variant_seed<S: DeserializeSeed<'de>>(self, seed: S) -> Result<(S::Value, Self), E> {
        let name = serde::de::value::StrDeserializer::new(self.name);
        Ok((seed.deserialize(name)?, self))
    }
}

impl<E: Error> Named<'_, E> {
    fn valueless<T>(&self) -> Result<T, E> {
        let expected = format!("an object with one of {}", Names(self.variants));
        Err(E::invalid_type(Unexpected::Str(self.name), &expected.as_str()))
    }
}

impl<'de, E: Error> VariantAccess<'de> for Named<'_, E> {
    type Error = E;

    fn unit_variant(self) -> Result<(), E> {
        Ok(())
    }

    fn newtype_variant_seed<S: DeserializeSeed<'de>>(self, _: S) -> Result<S::Value, E> {
        self.valueless()
    }

    fn tuple_variant<V: Visitor<'de>>(self, _: usize, _: V) -> Result<V::Value, E> {
        self.valueless()
    }

    fn struct_variant<V: Visitor<'de>>(self, _: &'static [&'static str], _: V) -> Result<V::Value, E> {
        self.valueless()
    }
}

/// A variant that is written as the one field of an object.
struct Field<A> {
    map: A,
    variants: &'static [&'static str],
}

impl<'de, A: MapAccess<'de>> EnumAccess<'de> for Field<A> {
    type Error = A::Error;
    type Variant = Self;

    fn variant_seed<S: DeserializeSeed<'de>>(mut self, seed: S) -> Result<(S::Value, Self), A::Error> {
        match self.map.next_key_seed(seed)? {
            Some(variant) => Ok((variant, self)),
            None => {
                let names = Names(self.variants);
                Err(A::Error::custom(format_args!("is an empty object, exactly one of {names} is expected")))
            }
        }
    }
}

impl<'de, A: MapAccess<'de>> VariantAccess<'de> for Field<A> {
    type Error = A::Error;

    fn unit_variant(self) -> Result<(), A::Error> {
        let expected = format!("one of {}", Names(self.variants));
        Err(A::Error::invalid_type(Unexpected::Map, &expected.as_str()))
    }

    fn newtype_variant_seed<S: DeserializeSeed<'de>>(mut self, seed: S) -> Result<S::Value, A::Error> {
        self.map.next_value_seed(Strict(seed))
    }

    fn tuple_variant<V: Visitor<'de>>(self, _: usize, visitor: V) -> Result<V::Value, A::Error> {
        Err(A::Error::invalid_type(Unexpected::TupleVariant, &visitor))
    }

    fn struct_variant<V: Visitor<'de>>(
        mut self,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, A::Error> {
        self.map.next_value_seed(Variant { fields, visitor })
    }
}

/// The fields of a variant.
struct Variant<V> {
    fields: &'static [&'static str],
    visitor: V,
}

impl<'de, V: Visitor<'de>> DeserializeSeed<'de> for Variant<V> {
    type Value = V::Value;

    fn deserialize<D: Deserializer<'de>>(self, reader: D) -> Result<V::Value, D::Error> {
        Strict(reader).deserialize_struct("", self.fields, self.visitor)
    }
}
